package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// Verifier looks API keys up.
type Verifier struct {
	db    calls.ItemGetter
	table string
	now   func() time.Time
}

// NewVerifier reads keys from the access table.
func NewVerifier(db calls.ItemGetter, table string) *Verifier {
	return &Verifier{db: db, table: table, now: time.Now}
}

// Verify returns the key's caller or a *Rejection; any other error means that the
// table could not be read. It has no effect.
func (v *Verifier) Verify(ctx context.Context, hash ids.KeyHash) (Caller, error) {
	found, err := get[keyItem](ctx, v.db, v.table, keyAt(hash))
	if err != nil {
		return Caller{}, fmt.Errorf("looking up the key: %w", err)
	}
	if !found.exists {
		return Caller{}, &Rejection{Reason: UnknownKey}
	}
	if found.damage != nil {
		return Caller{}, &Rejection{Reason: UnknownKey, Damage: found.damage}
	}
	switch key := found.row; {
	case *key.Disabled, key.Suspended:
		return Caller{}, &Rejection{Reason: Disabled}
	case key.expired(v.now()):
		return Caller{}, &Rejection{Reason: Expired}
	default:
		return Caller{account: key.Account, workspace: key.Workspace, key: hash, kind: key.Kind}, nil
	}
}

// Keyring looks up which keys belong to an account.
type Keyring struct {
	db    calls.BatchGetter
	table string
}

// NewKeyring reads keys from the access table.
func NewKeyring(db calls.BatchGetter, table string) *Keyring {
	return &Keyring{db: db, table: table}
}

// Owned are the hashes that name a key of an account.
type Owned struct {
	Hashes map[ids.KeyHash]bool
	Damage error // of keys that name no account: they are nobody's
}

// Owned returns those of at most 100 different hashes that name a key of the account,
// disabled and expired keys included. A damaged key is an error only if it is the
// account's. Owned has no effect.
func (k *Keyring) Owned(ctx context.Context, account ids.Account, hashes []ids.KeyHash) (Owned, error) {
	var keys []map[string]types.AttributeValue
	for _, h := range slices.Compact(slices.Sorted(slices.Values(hashes))) { // BatchGetItem refuses repeats
		keys = append(keys, keyAt(h).attributes())
	}
	if len(keys) > batchLimit {
		return Owned{}, errors.New("too many keys to look up at once")
	}
	items, err := batchGet(ctx, k.db, k.table, keys)
	if err != nil {
		return Owned{}, fmt.Errorf("looking up keys: %w", err)
	}
	owned := Owned{Hashes: make(map[ids.KeyHash]bool, len(hashes))}
	for _, item := range items {
		key, damage := decode[keyItem](item)
		switch {
		case key.Account == "":
			owned.Damage = errors.Join(owned.Damage, damage)
		case key.Account == account && damage != nil:
			return Owned{}, damage
		case key.Account == account:
			owned.Hashes[ids.KeyHash(strings.TrimPrefix(key.PK, keyPrefix))] = true
		}
	}
	return owned, nil
}
