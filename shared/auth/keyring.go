package auth

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// batchLimit is how many keys DynamoDB takes in one BatchGetItem.
const batchLimit = 100

type batchGetter interface {
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
}

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
	for attempt := 0; len(keys) > 0; attempt++ {
		if attempt > 0 {
			if err := calls.Pause(ctx, attempt); err != nil {
				return nil, fmt.Errorf("looking up keys: %w", err)
			}
		}
		out, err := k.db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{k.table: {Keys: keys, ConsistentRead: aws.Bool(true)}},
		})
		if err != nil {
			return nil, fmt.Errorf("looking up keys: %w", err)
		}
		for _, item := range out.Responses[k.table] {
			var key keyItem
			if decode(item, &key) == nil && key.check() == nil && key.Account == account {
				owned[hashOf(key)] = true
			}
		}
		keys = out.UnprocessedKeys[k.table].Keys
	}
	return owned, nil
}

func hashOf(k keyItem) KeyHash { return KeyHash(k.PK[len("key#"):]) }

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
