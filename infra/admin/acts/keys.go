package acts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// ReplaceKey adds a key to every allow-list of its account that has the old one.
//
// The lists keep the old key, which is taken out when it is deleted: requests with either are
// served until the new one is handed over.
func (s *Stack) ReplaceKey(ctx context.Context, key auth.Key, old ids.KeyHash) (lists Lists, err error) {
	err = s.DoAll(ctx, "key.replace", []any{"account", key.Account, "key", old, "successor", key.Hash}, func(ctx context.Context) (err error) {
		lists, err = s.relist(ctx, key.Account, old, func(list []ids.KeyHash) []ids.KeyHash {
			if slices.Contains(list, key.Hash) {
				return list
			}
			return append(slices.Clone(list), key.Hash)
		})
		for _, credential := range lists.passed {
			s.Warn("the list of credential " + credential + " is full, so the new key is not in it: `admin key delete` of another key makes room")
		}
		switch added := Count(lists.Changed, "allow-list") + " changed"; {
		case err != nil:
			return OrRepeat(ctx, err, added)
		case len(lists.passed) > 0 || lists.found.Damaged > 0:
			return Findings(added + ", and not every credential could be: see the warnings")
		}
		return nil
	})
	return lists, err
}

// DeleteKey deletes a key, and takes it out of allow-lists that have another. It returns
// auth.ErrNoKey if there is no such key.
//
// The key is disabled first, then it leaves the lists, and its row goes last. If it could still
// be used when its hash is out of a list, requests with it would pass over that credential. If the
// row went before the lists, a repetition would not find the rest.
func (s *Stack) DeleteKey(ctx context.Context, key auth.Key) error {
	err := s.Do(ctx, "key.disable", []any{"account", key.Account, "key", key.Hash}, func(ctx context.Context) error {
		return s.Registry.DisableKey(ctx, key.Account, key.Hash)
	})
	if err == nil && key.Account != "" { // nobody's key is in no list
		_, err = s.Unlist(ctx, key)
	}
	deletion := Watched(ctx) // what came before has lines of its own
	if err == nil {
		err = OrRepeat(ctx, s.Registry.DeleteKey(deletion, key.Account, key.Hash), "the key is refused, and may be deleted")
	}
	s.Audit(deletion, "key.delete", err, []any{"account", key.Account, "key", key.Hash})
	return err
}

// Lists are the allow-lists of an account that have a key.
type Lists struct {
	Listed  int // lists that have the key
	Changed int
	passed  []string // credentials whose list would be empty or too long
	found   Looked   // the account's credentials
}

// relistAttempts bounds how often relist reads the lists again that somebody else changed.
const relistAttempts = 5

// relist passes each allow-list of the account that has the key's hash through change. It goes on
// after a failure, and returns the first one.
func (s *Stack) relist(ctx context.Context, account ids.Account, hash ids.KeyHash, change func([]ids.KeyHash) []ids.KeyHash) (r Lists, err error) {
	changed := 0
	for range relistAttempts {
		var next Lists
		if next, err = s.relistOnce(ctx, account, hash, change); next.found.Where != "" { // the lists were read
			r = next
		}
		changed += next.Changed
		if !errors.Is(err, byok.ErrChanged) {
			break
		}
	}
	r.Changed = changed
	return r, err
}

func (s *Stack) relistOnce(ctx context.Context, account ids.Account, hash ids.KeyHash, change func([]ids.KeyHash) []ids.KeyHash) (r Lists, failed error) {
	found, err := s.Look(ctx, account, "")
	if errors.Is(err, auth.ErrNoAccount) { // a damaged key may name one that has no credentials
		return r, nil
	}
	if err != nil {
		return r, err
	}
	r.found = found
	for _, c := range found.Credentials {
		if !slices.Contains(c.AllowedAPIKeyHashes, hash) {
			continue
		}
		r.Listed++
		list := change(c.AllowedAPIKeyHashes)
		if slices.Equal(list, c.AllowedAPIKeyHashes) {
			continue
		}
		change := Watched(ctx)
		err := s.Credentials.SetAllowedKeys(change, c, list)
		if errors.Is(err, byok.ErrListLength) {
			r.passed = append(r.passed, fmt.Sprintf("%.8s %q", c.ID, c.Name))
			continue
		}
		s.Audit(change, "credential.keys", err, []any{"account", c.Account, "workspace", c.Workspace, "credential", c.ID})
		if err == nil {
			r.Changed++
		}
		failed = cmp.Or(failed, err)
	}
	return r, failed
}

// Unlist takes a disabled or deleted key out of the allow-lists that have another, and
// returns how many it changed.
func (s *Stack) Unlist(ctx context.Context, key auth.Key) (changed int, err error) {
	lists, err := s.relist(ctx, key.Account, key.Hash, func(list []ids.KeyHash) []ids.KeyHash {
		return slices.DeleteFunc(slices.Clone(list), func(hash ids.KeyHash) bool { return hash == key.Hash })
	})
	for _, credential := range lists.passed {
		s.Warn("credential " + credential + " is for this key alone: no request can use it any more")
	}
	switch {
	case err != nil:
		err = OrRepeat(ctx, err, "the key is refused, but may still be in allow-lists")
	case lists.found.Damaged > 0:
		err = Findings("the key is refused, but may still be in the list of a damaged credential: see the warnings, mend it, then repeat the command")
	}
	return lists.Changed, err
}
