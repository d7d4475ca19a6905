package auth

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// The access table, as stored. Every item has the format version v.
//
//	pk               sk                what
//	key#<hash>       key               keyItem
//	account#<id>     account           accountItem
//	workspace#<id>   workspace         workspaceItem
//	account#<id>     workspace#<id>    list entry: a workspace of the account
//	account#<id>     key#<hash>        list entry: a key of the account
//	workspace#<id>   key#<hash>        list entry: a key bound to the workspace
//
// List entries hold nothing but their key and v; the transaction that writes a row also
// writes its entries. So one consistent query reads a list.
const (
	itemVersion = 1

	keySort       = "key"
	accountSort   = "account"
	workspaceSort = "workspace"

	keyPrefix       = "key#"
	accountPrefix   = "account#"
	workspacePrefix = "workspace#"
)

type primaryKey struct {
	PK string `dynamodbav:"pk"`
	SK string `dynamodbav:"sk"`
}

func keyAt(h ids.KeyHash) primaryKey { return primaryKey{keyPrefix + string(h), keySort} }

func accountAt(id ids.Account) primaryKey { return primaryKey{accountPrefix + string(id), accountSort} }

func workspaceAt(id ids.Workspace) primaryKey {
	return primaryKey{workspacePrefix + string(id), workspaceSort}
}

// attributes is the key in the form of the SDK.
func (k primaryKey) attributes() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": calls.Text(k.PK), "sk": calls.Text(k.SK)}
}

// primaryKeyOf returns the item's own key, even if the item is damaged. The table's key
// schema makes both attributes strings.
func primaryKeyOf(item map[string]types.AttributeValue) primaryKey {
	return primaryKey{textOf(item, "pk"), textOf(item, "sk")}
}

// header is the part that all items have.
type header struct {
	primaryKey
	Version int `dynamodbav:"v"`
}

func newHeader(at primaryKey) header { return header{at, itemVersion} }

// check refuses an item of another version.
func (h *header) check() error {
	if h.Version != itemVersion {
		return fmt.Errorf("item version %d", h.Version)
	}
	return nil
}

type keyItem struct {
	header
	Account   ids.Account   `dynamodbav:"account"`
	Workspace ids.Workspace `dynamodbav:"workspace,omitempty"`
	Kind      Kind          `dynamodbav:"kind"`
	Name      string        `dynamodbav:"name"`
	Disabled  *bool         `dynamodbav:"disabled"` // in every key: nil is a fault
	// Suspended means that the account was suspended. It is set and removed on all keys of the
	// account, and is independent of Disabled.
	Suspended bool `dynamodbav:"suspended,omitempty"`
	// ExpiresAt and CreatedAt are Unix seconds; 0 means that the key never expires.
	ExpiresAt int64 `dynamodbav:"expires_at,omitempty"`
	CreatedAt int64 `dynamodbav:"created_at"`
}

type accountItem struct {
	header
	Name             string        `dynamodbav:"name"`
	DefaultWorkspace ids.Workspace `dynamodbav:"default_workspace,omitempty"`
	Suspended        bool          `dynamodbav:"suspended,omitempty"` // no key is made
	CreatedAt        int64         `dynamodbav:"created_at"`
}

type workspaceItem struct {
	header
	Account   ids.Account `dynamodbav:"account"`
	Name      string      `dynamodbav:"name"`
	CreatedAt int64       `dynamodbav:"created_at"`
	// DeletedAt is absent as long as the workspace lives.
	DeletedAt *int64 `dynamodbav:"deleted_at,omitempty"`
	// Next is the sort_order of the next credential, by provider.
	Next map[string]int64 `dynamodbav:"next"`
	// Made and MadeBytes are the number and the bytes of all credentials that got a position.
	// They are nil if that is not known, as after a restore.
	Made      *int64 `dynamodbav:"made,omitempty"`
	MadeBytes *int64 `dynamodbav:"made_bytes,omitempty"`
}

// isLive is the condition that a workspace exists, is live and belongs to the account.
const isLive = "account = :account AND v = :v AND attribute_not_exists(deleted_at)"

// check refuses a key that contradicts itself.
func (k *keyItem) check() error {
	if err := k.header.check(); err != nil {
		return err
	}
	switch {
	case k.Account == "":
		return errors.New("no account")
	case k.Kind != Management && k.Kind != Standard:
		return errors.New("unknown kind")
	case k.Kind == Management && k.Workspace != "":
		return errors.New("a management key bound to a workspace")
	case k.Disabled == nil:
		return errors.New("neither disabled nor enabled")
	}
	return nil
}

// expired reports whether the time ExpiresAt is reached.
func (k *keyItem) expired(now time.Time) bool {
	return k.ExpiresAt != 0 && !now.Before(time.Unix(k.ExpiresAt, 0))
}

type decodable interface{ check() error }

// decode reads an item and checks it. Its error never quotes a value. If the item cannot be
// read, decode sets only its key.
func decode(item map[string]types.AttributeValue, into decodable) error {
	if err := read(item, into); err != nil {
		reflect.ValueOf(into).Elem().SetZero() // the decoder may have set any field
		_ = read(primaryKeyOf(item).attributes(), into)
		return err
	}
	return into.check()
}

// read refuses NULL, which no version of this service writes. The decoder would read it as
// zero, for example as a key that never expires.
func read(item map[string]types.AttributeValue, into any) error {
	if err := attributevalue.UnmarshalMap(item, into); err != nil {
		if wrong, ok := errors.AsType[*attributevalue.UnmarshalTypeError](err); ok {
			return fmt.Errorf("stored %s where %s is expected", wrong.Value, wrong.Type)
		}
		return errors.New("unreadable item")
	}
	for _, value := range item {
		if _, null := value.(*types.AttributeValueMemberNULL); null {
			return errors.New("stored NULL")
		}
	}
	return nil
}

type itemGetter interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
}

// lookup distinguishes an absent item from an unreadable one.
type lookup struct {
	exists    bool
	account   ids.Account   // that the item names, even if it is damaged
	workspace ids.Workspace // the same
	fault     error
}

// get reads one item, strongly consistent, into the struct behind into.
func get(ctx context.Context, db itemGetter, table string, at primaryKey, into decodable) (lookup, error) {
	out, err := db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &table,
		Key:            at.attributes(),
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return lookup{}, err
	}
	if out.Item == nil {
		return lookup{}, nil
	}
	if primaryKeyOf(out.Item) != at {
		return lookup{}, errors.New("the response is another item")
	}
	return lookup{true, accountOf(out.Item), ids.Workspace(textOf(out.Item, "workspace")), decode(out.Item, into)}, nil
}

// accountOf returns the account that the item names, even if the item is damaged.
func accountOf(item map[string]types.AttributeValue) ids.Account {
	return ids.Account(textOf(item, "account"))
}

// textOf returns an attribute, or "" if it is no string.
func textOf(item map[string]types.AttributeValue, attribute string) string {
	if text, ok := item[attribute].(*types.AttributeValueMemberS); ok {
		return text.Value
	}
	return ""
}

// batchLimit is how many keys DynamoDB takes in one BatchGetItem.
const batchLimit = 100

type batchGetter interface {
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
}

// batchGet reads at most batchLimit items, strongly consistent. It asks again for items
// that DynamoDB leaves unprocessed, until the context ends. It leaves out absent items, and
// the order may differ from the order of keys.
func batchGet(ctx context.Context, db batchGetter, table string, keys []map[string]types.AttributeValue) ([]map[string]types.AttributeValue, error) {
	var items []map[string]types.AttributeValue
	for attempt := 0; len(keys) > 0; attempt++ {
		if attempt > 0 {
			if err := calls.Pause(ctx, attempt); err != nil {
				return nil, err
			}
		}
		out, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{table: {Keys: keys, ConsistentRead: aws.Bool(true)}},
		})
		if err != nil {
			return nil, err
		}
		items = append(items, out.Responses[table]...)
		keys = out.UnprocessedKeys[table].Keys
	}
	return items, nil
}
