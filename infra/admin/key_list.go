package main

import (
	"context"
	"time"

	"signalbox.dev/shared/auth"
)

type keyList struct {
	owner
}

type keyView struct {
	Hash      auth.KeyHash `json:"hash"`
	Kind      auth.Kind    `json:"kind"`
	Name      string       `json:"name"`
	Workspace optional     `json:"workspace_id"`
	State     string       `json:"state"` // active, disabled, expired or broken
	CreatedAt optional     `json:"created_at"`
	ExpiresAt optional     `json:"expires_at"`
}

type createdKeyView struct {
	Key string `json:"key"`
	keyView
}

func viewKey(k auth.Key, now time.Time) keyView {
	return keyView{
		Hash: k.Hash, Kind: k.Kind, Name: k.Name, Workspace: optional(k.Workspace), State: stateOf(k, now),
		CreatedAt: when(k.CreatedAt), ExpiresAt: when(k.ExpiresAt),
	}
}

func stateOf(k auth.Key, now time.Time) string {
	switch {
	case k.Fault != nil:
		return "broken"
	case k.Disabled:
		return "disabled"
	case !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt):
		return "expired"
	default:
		return "active"
	}
}

// Run lists keys, by the beginning of their hash.
func (c keyList) Run(ctx context.Context, s *session) error {
	keys, err := s.registry.ListKeys(ctx, c.Account)
	if err != nil {
		return err
	}
	views := make([]keyView, len(keys))
	for i, key := range keys {
		views[i] = viewKey(key, s.now())
	}
	return list(s.out, views,
		column[keyView]{"KEY HASH", func(v keyView) string { return v.Hash.Short() }},
		column[keyView]{"KIND", func(v keyView) string { return string(v.Kind) }},
		column[keyView]{"NAME", func(v keyView) string { return v.Name }},
		column[keyView]{"WORKSPACE", func(v keyView) string { return string(v.Workspace) }},
		column[keyView]{"STATE", func(v keyView) string { return v.State }},
		column[keyView]{"CREATED", func(v keyView) string { return string(v.CreatedAt) }},
		column[keyView]{"EXPIRES", func(v keyView) string { return string(v.ExpiresAt) }},
	)
}
