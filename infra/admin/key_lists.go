package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
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

// Run adds a key to every allow-list of its account that has the old one. The lists have the
// old key, too, until it is deleted.
func (c keyReplace) Run(ctx context.Context, s *session) error {
	key, err := oneKey{c.keySearch, c.New}.find(ctx, s)
	if err != nil {
		return err
	}
	if state := stateOf(key.Key, s.now()); state != active {
		return exit.Refusal(fmt.Sprintf("key %s is %s: nothing was changed", key.Hash.Short(), state))
	}
	old, err := c.findOld(ctx, s, key.Account)
	if err != nil {
		return err
	}
	if old.hash == key.Hash {
		return exit.UsageError("a key cannot replace itself: name the old one, then the new one")
	}
	attrs := []any{"account", key.Account, "key", old.hash, "successor", key.Hash}
	if err := s.begin(ctx, "key.replace", attrs...); err != nil {
		return err
	}
	lists, err := s.relist(ctx, key.Account, old.hash, func(list []ids.KeyHash) []ids.KeyHash {
		if slices.Contains(list, key.Hash) {
			return list
		}
		return append(slices.Clone(list), key.Hash)
	})
	for _, credential := range lists.passed {
		s.warn("the list of credential " + credential + " is full, so the new key is not in it: `admin key delete` of another key makes room")
	}
	switch added := output.Count(lists.changed, "allow-list") + " changed"; {
	case err != nil:
		err = &exit.Partial{Err: err, Done: added + ": repeat the command"}
	case len(lists.passed) > 0 || lists.unread:
		err = exit.Findings(added + ", and not every credential could be: see the warnings")
	}
	sentence := fmt.Sprintf("Key %s is in %s beside the old one", key.Hash.Short(), output.Count(lists.changed, "more allow-list"))
	switch {
	case err == nil && lists.listed == 0:
		s.warn("no allow-list of the account has the old key " + string(old.hash[:8]))
		sentence = "No allow-list was changed."
	case old.deleted:
		sentence += ", which is deleted already."
	default:
		sentence += fmt.Sprintf(". Hand it over, then `admin key delete %s`.", old.hash[:8])
	}
	return s.finish(ctx, "key.replace", err, result{replacedView{old.hash, key.Hash, lists.changed}, sentence}, attrs...)
}

// findOld finds the old key in the account. If its hash is whole, it may be deleted already, or
// too damaged to say whose it is.
func (c keyReplace) findOld(ctx context.Context, s *session, account ids.Account) (oldKey, error) {
	hash := ids.KeyHash(c.Old)
	found, err := oneKey{keySearch{account}, c.Old}.find(ctx, s)
	if !errors.Is(err, auth.ErrNoKey) || len(hash) < arguments.HashLength {
		return oldKey{hash: found.Hash}, err
	}
	switch _, lookup := s.registry.FindKey(ctx, hash); {
	case errors.Is(lookup, auth.ErrNoKey):
		return oldKey{hash: hash, deleted: true}, nil
	case lookup != nil:
		return oldKey{}, lookup
	}
	return oldKey{}, err
}

type relisted struct {
	listed  int // lists that have the key
	changed int
	passed  []string              // credentials whose list would be empty or too long
	unread  bool                  // some credentials cannot be read
	holding map[ids.Workspace]int // the number of credentials
}

// relistAttempts bounds how often relist reads the lists again that somebody else changed.
const relistAttempts = 5

// relist replaces each allow-list of the account that has the key's hash by what change
// returns. It goes on after a failure, and returns the first one.
func (s *session) relist(ctx context.Context, account ids.Account, hash ids.KeyHash, change func([]ids.KeyHash) []ids.KeyHash) (r relisted, err error) {
	changed := 0
	for range relistAttempts {
		var next relisted
		if next, err = s.relistOnce(ctx, account, hash, change); next.holding != nil { // the lists were read
			r = next
		}
		changed += next.changed
		if !errors.Is(err, byok.ErrChanged) {
			break
		}
	}
	r.changed = changed
	if changed > 0 {
		s.warnOfSize(ctx, r.holding)
	}
	return r, err
}

func (s *session) relistOnce(ctx context.Context, account ids.Account, hash ids.KeyHash, change func([]ids.KeyHash) []ids.KeyHash) (r relisted, failed error) {
	found, err := search{Account: account}.look(ctx, s)
	if errors.Is(err, auth.ErrNoAccount) { // a damaged key may name one that has no credentials
		return r, nil
	}
	if err != nil {
		return r, err
	}
	r.unread, r.holding = found.unread > 0, map[ids.Workspace]int{}
	for _, c := range found.credentials {
		r.holding[c.Workspace]++
		if !slices.Contains(c.AllowedAPIKeyHashes, hash) {
			continue
		}
		r.listed++
		list := change(c.AllowedAPIKeyHashes)
		if slices.Equal(list, c.AllowedAPIKeyHashes) {
			continue
		}
		err := s.credentials.SetAllowedKeys(ctx, c, list)
		if errors.Is(err, byok.ErrListLength) {
			r.passed = append(r.passed, fmt.Sprintf("%.8s %q", c.ID, c.Name))
			continue
		}
		s.audit(ctx, "credential.keys", err, "account", c.Account, "workspace", c.Workspace, "credential", c.ID)
		if err == nil {
			r.changed++
		}
		failed = cmp.Or(failed, err)
	}
	return r, failed
}

// unlist takes a disabled or deleted key out of the allow-lists that have another, and
// returns how many it changed.
func (s *session) unlist(ctx context.Context, key auth.SurveyedKey) (changed int, err error) {
	lists, err := s.relist(ctx, key.Account, key.Hash, func(list []ids.KeyHash) []ids.KeyHash {
		return slices.DeleteFunc(slices.Clone(list), func(hash ids.KeyHash) bool { return hash == key.Hash })
	})
	for _, credential := range lists.passed {
		s.warn("credential " + credential + " is for this key alone: no request can use it any more")
	}
	switch {
	case err != nil:
		err = &exit.Partial{Err: err, Done: "the key is refused, but may still be in allow-lists: repeat the command"}
	case lists.unread:
		err = exit.Findings("the key is refused, but may still be in the list of a credential that cannot be read: see the warnings, mend it, then repeat the command")
	}
	return lists.changed, err
}

// allowing returns a warning if credentials list the key in allowed_api_key_hashes, and no
// other active key that is as young.
func (s *session) allowing(ctx context.Context, key auth.SurveyedKey) string {
	if key.Account == "" { // it cannot be read: no request with the key passes
		return ""
	}
	found, err := search{Account: key.Account}.look(ctx, s)
	if err != nil {
		return "it is not known which credentials allow this key: " + exit.Sentence(err, exit.Failed)
	}
	keys, _ := s.registry.ListKeys(ctx, key.Account) // without them it warns of every list
	younger, _ := split(keys, func(k auth.Key) bool {
		return k.Hash != key.Hash && !k.CreatedAt.Before(key.CreatedAt) && stateOf(k, s.now()) == active
	})
	var names []string
	for _, c := range found.credentials {
		if slices.Contains(c.AllowedAPIKeyHashes, key.Hash) && !slices.ContainsFunc(younger, func(k auth.Key) bool { return slices.Contains(c.AllowedAPIKeyHashes, k.Hash) }) {
			names = append(names, fmt.Sprintf("%.8s %q", c.ID, c.Name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("this key is in the allow-list of %s: %s. Requests with the key that takes its place pass over them, until `admin key replace` adds it",
		output.Count(len(names), "credential"), strings.Join(names, ", "))
}
