package acts

import (
	"cmp"
	"context"
	"errors"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// Suspend suspends an account: its keys are refused, and none can be made. It returns the number
// of keys that it marked.
//
// The account's row comes first: from then on no key is made, so the list that follows has every
// key. With the keys first, one that is made in between would stay in use. A row that cannot be
// marked keeps no key in use: the keys are marked all the same.
func (s *Stack) Suspend(ctx context.Context, id ids.Account) (changed int, err error) {
	err = s.DoAll(ctx, "account.disable", []any{"account", id, "keys", &changed}, func(ctx context.Context) error {
		err := s.suspendRow(ctx, id, true)
		var failed error
		changed, failed = s.suspendKeys(ctx, id, true)
		return OrRepeat(ctx, cmp.Or(err, failed), Count(changed, "key")+" changed, others not")
	})
	return changed, err
}

// Resume ends the suspension of an account, and returns from how many keys it removed the mark.
//
// The account's row comes last: an interrupted act leaves the account suspended in the lists, so
// the operator repeats it. With the row first the account would look active while its keys are
// refused.
func (s *Stack) Resume(ctx context.Context, id ids.Account) (changed int, err error) {
	err = s.DoAll(ctx, "account.enable", []any{"account", id, "keys", &changed}, func(ctx context.Context) (err error) {
		if changed, err = s.suspendKeys(ctx, id, false); err == nil {
			err = s.suspendRow(ctx, id, false)
		}
		return OrRepeat(ctx, err, Count(changed, "key")+" changed, others not")
	})
	return changed, err
}

// suspendRow sets or removes the mark on the account's row. No key of an account without a row
// can be made.
func (s *Stack) suspendRow(ctx context.Context, id ids.Account, suspended bool) error {
	err := s.Registry.SuspendAccount(ctx, id, suspended)
	if errors.Is(err, auth.ErrNoAccount) {
		s.Warn("the account has keys and no row")
		return nil
	}
	return err
}

// FindAccount finds an account that is to be suspended or resumed. It must have a row or keys:
// damage must not keep a key in use. It warns of a damaged row.
func (s *Stack) FindAccount(ctx context.Context, id ids.Account, hasKeys bool) (auth.Account, error) {
	account, err := s.Registry.FindAccount(ctx, id)
	if hasKeys && errors.Is(err, auth.ErrNoAccount) {
		return account, nil
	}
	if account.Damage != nil {
		s.Warn("the account's row is damaged: `admin restore check` says how. Put it right, then look at `admin account list`")
	}
	return account, err
}

// suspendKeys sets or removes the mark on keys of the account until its list has none that it
// has not tried: a key may be made until the account's row is marked, and a row that names no
// account may be put right. It returns how many it changed, and the first failure.
func (s *Stack) suspendKeys(ctx context.Context, account ids.Account, suspended bool) (changed int, failed error) {
	action, tried := "key.resume", map[string]bool{}
	if suspended {
		action = "key.suspend"
	}
	for ctx.Err() == nil {
		listed, err := s.Registry.ListKeys(ctx, account)
		if err != nil {
			return changed, cmp.Or(failed, err)
		}
		keys, _ := Split(listed, func(key auth.Key) bool {
			return key.Suspended != suspended && !tried[string(key.Account)+string(key.Hash)]
		})
		if len(keys) == 0 {
			return changed, failed
		}
		n, err := s.changeKeys(ctx, action, keys, func(ctx context.Context, key auth.Key) error {
			return s.Registry.SuspendKey(ctx, key.Account, key.Hash, suspended)
		})
		changed, failed = changed+n, cmp.Or(failed, err)
		for _, key := range keys {
			tried[string(key.Account)+string(key.Hash)] = true
		}
	}
	return changed, cmp.Or(failed, ctx.Err())
}
