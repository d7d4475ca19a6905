package main

import (
	"context"
	"slices"
	"strings"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// oneKey is the key a command is about, by its hash or the beginning of it.
type oneKey struct {
	owner
	Hash hashPrefix `arg:"" help:"The key's hash, or as much of its beginning as only this key has (8 or more)."`
}

type (
	keyDisable struct{ oneKey }
	keyEnable  struct{ oneKey }
	keyDelete  struct {
		oneKey
		confirmation
	}
)

const (
	hashLength = 64
	leastHash  = 8
)

// hashPrefix is a key's hash, or the beginning of it, in lower case.
type hashPrefix string

// parseHashPrefix never repeats what it refuses, which may be a key.
func parseHashPrefix(s string) (hashPrefix, error) {
	s = strings.ToLower(s)
	switch {
	case len(s) > hashLength || strings.Trim(s, "0123456789abcdef") != "":
		return "", errNotHash
	case len(s) < leastHash:
		return "", errShortHash
	}
	return hashPrefix(s), nil
}

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
	err := c.confirm(ctx, s, func() (subject, error) {
		key, err := c.look(ctx, s)
		c.Hash = hashPrefix(key.Hash)
		return subject{"removes " + named("key", key.Name, key.Hash.Short()) + " for good; `key disable` can be taken back",
			[]string{key.Name, key.Hash.Short(), string(key.Hash)}}, err
	})
	if err != nil {
		return err
	}
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
	if len(c.Hash) == hashLength {
		return auth.KeyHash(c.Hash), nil
	}
	key, err := c.look(ctx, s)
	return key.Hash, err
}

// look finds the key in the account's list.
func (c oneKey) look(ctx context.Context, s *session) (auth.Key, error) {
	keys, err := s.registry.ListKeys(ctx, c.Account)
	if err != nil {
		return auth.Key{}, err
	}
	keys = slices.DeleteFunc(keys, func(k auth.Key) bool { return !strings.HasPrefix(string(k.Hash), string(c.Hash)) })
	switch len(keys) {
	case 0:
		return auth.Key{}, auth.ErrNoKey
	case 1:
		return keys[0], nil
	default:
		return auth.Key{}, errAmbiguous
	}
}
