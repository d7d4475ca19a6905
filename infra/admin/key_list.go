package main

import (
	"context"
	"slices"
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

// Run lists keys by their hash. Where only that makes the table fit, it is the
// beginning of the hash, which is enough to name a key here and in logs.
func (c keyList) Run(ctx context.Context, s *session) error {
	keys, err := s.registry.ListKeys(ctx, c.Account)
	if err != nil {
		return err
	}
	views := make([]keyView, len(keys))
	for i, key := range keys {
		views[i] = viewKey(key, s.now())
	}
	columns := []column[keyView]{
		{"KEY HASH", func(v keyView) string { return string(v.Hash) }},
		{"KIND", func(v keyView) string { return string(v.Kind) }},
		{"NAME", func(v keyView) string { return v.Name }},
		{"WORKSPACE", func(v keyView) string { return string(v.Workspace) }},
		{"STATE", func(v keyView) string { return v.State }},
		{"CREATED", func(v keyView) string { return string(v.CreatedAt) }},
		{"EXPIRES", func(v keyView) string { return string(v.ExpiresAt) }},
	}
	short := slices.Clone(columns)
	short[0].cell = func(v keyView) string { return v.Hash.Short() }
	if !s.out.fits(table(views, columns)) && s.out.fits(table(views, short)) {
		columns = short
	}
	return list(s.out, views, columns...)
}
