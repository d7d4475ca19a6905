package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
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

// damage is the error for the row with this key, or nil if nothing is wrong with it.
func (k primaryKey) damage(wrong error) error {
	if wrong == nil {
		return nil
	}
	kind, id, _ := strings.Cut(k.PK, "#")
	if k.SK == keySort {
		id = ids.KeyHash(id).Short()
	}
	return &calls.Damage{Kind: kind, ID: id, Wrong: wrong}
}

// attributes is the key in the form of the SDK.
func (k primaryKey) attributes() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": calls.Text(k.PK), "sk": calls.Text(k.SK)}
}

// primaryKeyOf returns the item's own key, even if the item is damaged. The table's key
// schema makes both attributes strings.
func primaryKeyOf(item map[string]types.AttributeValue) primaryKey {
	return primaryKey{calls.TextOf(item, "pk"), calls.TextOf(item, "sk")}
}

// header is the part that all items have.
type header struct {
	primaryKey
	Version int `dynamodbav:"v"`
}

func newHeader(at primaryKey) header { return header{at, itemVersion} }

// check refuses an item of another version.
func (h header) check() error {
	if h.Version != itemVersion {
		return fmt.Errorf("item version %d", h.Version)
	}
	return nil
}

type keyItem struct {
	header
	Account   ids.Account   `dynamodbav:"account"`
	Workspace ids.Workspace `dynamodbav:"workspace,omitempty"`
	// Bound is stored with Workspace: a key whose row lost its workspace must not reach the whole
	// account. Expiry and suspension have no such guard.
	Bound    bool   `dynamodbav:"bound,omitempty"`
	Kind     Kind   `dynamodbav:"kind"`
	Name     string `dynamodbav:"name"`
	Disabled *bool  `dynamodbav:"disabled"` // nil only in a damaged key
	// Suspended means that the account was suspended. It is set and removed on all keys of the
	// account, and is independent of Disabled.
	Suspended bool `dynamodbav:"suspended,omitempty"`
	// ExpiresAt and CreatedAt are Unix seconds; 0 means that the key never expires.
	ExpiresAt int64 `dynamodbav:"expires_at,omitempty"`
	CreatedAt int64 `dynamodbav:"created_at"`
}

var errNoAccount = errors.New("no account")

// check refuses a key that contradicts itself.
func (k keyItem) check() error {
	if err := k.header.check(); err != nil {
		return err
	}
	switch {
	case k.Account == "":
		return errNoAccount
	case k.Kind != Management && k.Kind != Standard:
		return errors.New("unknown kind")
	case k.Bound && k.Workspace == "":
		return errors.New("bound to no workspace")
	case k.Kind == Management && k.Workspace != "":
		return errors.New("a management key bound to a workspace")
	case k.Disabled == nil:
		return errors.New("neither disabled nor enabled")
	}
	return nil
}

// expired reports whether the time ExpiresAt is reached.
func (k keyItem) expired(now time.Time) bool {
	return k.ExpiresAt != 0 && !now.Before(time.Unix(k.ExpiresAt, 0))
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

// check refuses a workspace of nobody, and one whose deletion has no time.
func (w workspaceItem) check() error {
	switch {
	case w.Account == "":
		return errNoAccount
	case w.DeletedAt != nil && *w.DeletedAt <= 0:
		return errors.New("deleted before 1970")
	}
	return w.header.check()
}

// isLive is the condition that a workspace exists, is live and belongs to the account.
const isLive = "account = :account AND v = :v AND attribute_not_exists(deleted_at)"

// decode reads an item and checks it. The damage is a *calls.Damage; of a damaged row it keeps all
// that can be read. No version of this service writes NULL, which the decoder reads as zero, for
// example as a key that never expires.
func decode[T interface{ check() error }](item map[string]types.AttributeValue) (row T, damage error) {
	wrong := calls.Decode(item, &row, "account", "workspace")
	for _, value := range item {
		if _, isNull := value.(*types.AttributeValueMemberNULL); isNull {
			wrong = errors.New("stored NULL")
		}
	}
	return row, primaryKeyOf(item).damage(cmp.Or(wrong, row.check()))
}

// lookup is the result of reading one row. An absent row is not a damaged one.
type lookup[T any] struct {
	row    T
	exists bool
	damage error // a *calls.Damage
}

// get looks up the row, strongly consistent. A damaged row is no error.
func get[T interface{ check() error }](ctx context.Context, db calls.ItemGetter, table string, at primaryKey) (lookup[T], error) {
	item, err := calls.Get(ctx, db, table, at.attributes())
	if err != nil || item == nil {
		return lookup[T]{}, err
	}
	row, damage := decode[T](item)
	return lookup[T]{row, true, damage}, nil
}

// batchLimit is how many keys DynamoDB takes in one BatchGetItem.
const batchLimit = 100

// batchGet reads at most batchLimit items, strongly consistent. It asks again for items
// that DynamoDB leaves unprocessed, until the context ends. It leaves out absent items, and
// the order may differ from the order of keys.
func batchGet(ctx context.Context, db calls.BatchGetter, table string, keys []map[string]types.AttributeValue) ([]map[string]types.AttributeValue, error) {
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
