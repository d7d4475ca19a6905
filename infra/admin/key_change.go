package main

import (
	"context"
	"strings"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// oneKey is the key a command is about, by its hash or the beginning of it.
type oneKey struct {
	owner
	Hash string `arg:"" help:"The key's hash, or as much of its beginning as only this key has (8 or more)."`
}

type (
	keyDisable struct{ oneKey }
	keyEnable  struct{ oneKey }
	keyDelete  struct{ oneKey }
)

const (
	hashLength = 64
	leastHash  = 8
)

// Run disables a key.
func (c keyDisable) Run(ctx context.Context, s *session) error {
	return c.change(ctx, s, "key.disable", "disabled", s.registry.DisableKey)
}

// Run enables a key.
func (c keyEnable) Run(ctx context.Context, s *session) error {
	return c.change(ctx, s, "key.enable", "active", s.registry.EnableKey)
}

// Run deletes a key.
func (c keyDelete) Run(ctx context.Context, s *session) error {
	return c.change(ctx, s, "key.delete", "deleted", s.registry.DeleteKey)
}

func (c oneKey) change(ctx context.Context, s *session, action, state string, change func(context.Context, ids.Account, auth.KeyHash) error) error {
	hash, err := c.find(ctx, s)
	if err == nil {
		err = change(ctx, c.Account, hash)
	}
	s.audit(ctx, action, err, "account", c.Account, "key", hash)
	if err != nil {
		return err
	}
	return s.out.say(changed{string(hash), state}, "Key %s is %s.", hash.Short(), state)
}

// find completes a hash of which only the beginning was given.
func (c oneKey) find(ctx context.Context, s *session) (auth.KeyHash, error) {
	begin := strings.ToLower(c.Hash)
	if len(begin) == hashLength {
		return auth.KeyHash(begin), nil
	}
	if len(begin) < leastHash {
		return "", errAmbiguous
	}
	keys, err := s.registry.ListKeys(ctx, c.Account)
	if err != nil {
		return "", err
	}
	var found auth.KeyHash
	for _, key := range keys {
		if !strings.HasPrefix(string(key.Hash), begin) {
			continue
		}
		if found != "" {
			return "", errAmbiguous
		}
		found = key.Hash
	}
	if found == "" {
		return "", auth.ErrNoKey
	}
	return found, nil
}
