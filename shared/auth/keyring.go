package auth

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/ids"
)

// Keyring answers which keys are an account's own.
type Keyring struct {
	db    batchGetter
	table string
}

// NewKeyring reads keys from the access table of that name.
func NewKeyring(db batchGetter, table string) *Keyring {
	return &Keyring{db: db, table: table}
}

// Owned tells which of the hashes, at most 100 different ones, name a key of
// the account; disabled and expired keys count. It has no effect.
func (k *Keyring) Owned(ctx context.Context, account ids.Account, hashes []KeyHash) (map[KeyHash]bool, error) {
	owned := make(map[KeyHash]bool, len(hashes))
	keys := uniqueKeys(hashes)
	if len(keys) > batchLimit {
		return nil, errors.New("too many keys to look up at once")
	}
	items, err := batchGet(ctx, k.db, k.table, keys)
	if err != nil {
		return nil, fmt.Errorf("looking up keys: %w", err)
	}
	for _, item := range items {
		var key keyItem
		if decode(item, &key) == nil && key.check() == nil && key.Account == account {
			owned[hashOf(key)] = true
		}
	}
	return owned, nil
}

func hashOf(k keyItem) KeyHash { return KeyHash(k.PK[len(keyPrefix):]) }

// uniqueKeys names each key once: BatchGetItem refuses repeats.
func uniqueKeys(hashes []KeyHash) []map[string]types.AttributeValue {
	seen := make(map[KeyHash]bool, len(hashes))
	var keys []map[string]types.AttributeValue
	for _, h := range hashes {
		if !seen[h] {
			seen[h] = true
			keys = append(keys, keyAt(h).attributes())
		}
	}
	return keys
}
