package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

type replacedView struct {
	Old     ids.KeyHash `json:"old"`
	Hash    ids.KeyHash `json:"hash"`
	Changed int         `json:"changed"` // allow-lists
}

type oldKey struct {
	hash    ids.KeyHash
	deleted bool
}

func (c keyReplace) Run(ctx context.Context, s *session) error {
	key, err := oneKey{c.keySearch, c.New}.find(ctx, s)
	if err != nil {
		return err
	}
	if state := stateOf(key, s.now()); state != active {
		return acts.Refusal(fmt.Sprintf("key %s is %s: nothing was changed", key.Hash.Short(), state))
	}
	old, err := c.findOld(ctx, s, key.Account)
	if err != nil {
		return err
	}
	if old.hash == key.Hash {
		return acts.UsageError("a key cannot replace itself: name the old one, then the new one")
	}
	lists, err := s.ReplaceKey(ctx, key, old.hash)
	if err != nil {
		return err
	}
	sentence := fmt.Sprintf("Key %s is in %s beside the old one", key.Hash.Short(), acts.Count(lists.Changed, "more allow-list"))
	switch {
	case lists.Listed == 0:
		s.Warn("no allow-list of the account has the old key " + string(old.hash[:8]))
		sentence = "No allow-list was changed."
	case old.deleted:
		sentence += ", which is deleted already."
	default:
		sentence += fmt.Sprintf(". Hand it over, then `admin key delete %s`.", old.hash[:8])
	}
	return s.out.Say(replacedView{old.hash, key.Hash, lists.Changed}, "%s", sentence)
}

// findOld finds the old key in the account. If its hash is whole, it may be deleted already, or
// too damaged to say whose it is.
func (c keyReplace) findOld(ctx context.Context, s *session, account ids.Account) (oldKey, error) {
	hash := ids.KeyHash(c.Old)
	found, err := oneKey{keySearch{account}, c.Old}.find(ctx, s)
	if !errors.Is(err, auth.ErrNoKey) || len(hash) < arguments.HashLength {
		return oldKey{hash: found.Hash}, err
	}
	switch _, lookup := s.Registry.FindKey(ctx, hash); {
	case errors.Is(lookup, auth.ErrNoKey):
		return oldKey{hash: hash, deleted: true}, nil
	case lookup != nil:
		return oldKey{}, lookup
	}
	return oldKey{}, err
}

// allowing returns a warning if credentials list the key in allowed_api_key_hashes, and no
// other active key that is as young.
func (s *session) allowing(ctx context.Context, key auth.Key) string {
	if key.Account == "" { // it is damaged: no request with the key passes
		return ""
	}
	found, err := s.Look(ctx, key.Account, "")
	if err != nil {
		return "it is not known which credentials allow this key: " + acts.ErrorText(err, true)
	}
	keys, _ := s.Registry.ListKeys(ctx, key.Account) // without them it warns of every list
	younger, _ := acts.Split(keys, func(k auth.Key) bool {
		return k.Hash != key.Hash && !k.CreatedAt.Before(key.CreatedAt) && stateOf(k, s.now()) == active
	})
	var names []string
	for _, c := range found.Credentials {
		if slices.Contains(c.AllowedAPIKeyHashes, key.Hash) && !slices.ContainsFunc(younger, func(k auth.Key) bool { return slices.Contains(c.AllowedAPIKeyHashes, k.Hash) }) {
			names = append(names, fmt.Sprintf("%.8s %q", c.ID, c.Name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("this key is in the allow-list of %s: %s. Requests with the key that takes its place pass over them, until `admin key replace` adds it",
		acts.Count(len(names), "credential"), strings.Join(names, ", "))
}
