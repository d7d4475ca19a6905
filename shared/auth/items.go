package auth

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
// List entries hold nothing but their key and v; they are written in the same
// transaction as what they list, so that a list is one consistent query.
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

func keyAt(h KeyHash) primaryKey { return primaryKey{keyPrefix + string(h), keySort} }

func accountAt(id ids.Account) primaryKey { return primaryKey{accountPrefix + string(id), accountSort} }

func workspaceAt(id ids.Workspace) primaryKey {
	return primaryKey{workspacePrefix + string(id), workspaceSort}
}

// attributes is the key as the SDK wants it.
func (k primaryKey) attributes() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: k.PK},
		"sk": &types.AttributeValueMemberS{Value: k.SK},
	}
}

// isOf reports whether this is the item's own key.
func (k primaryKey) isOf(item map[string]types.AttributeValue) bool {
	var own primaryKey
	return decode(item, &own) == nil && own == k
}

type keyItem struct {
	primaryKey
	Version   int           `dynamodbav:"v"`
	Account   ids.Account   `dynamodbav:"account"`
	Workspace ids.Workspace `dynamodbav:"workspace,omitempty"`
	Kind      Kind          `dynamodbav:"kind"`
	Name      string        `dynamodbav:"name"`
	Disabled  bool          `dynamodbav:"disabled"`
	// ExpiresAt and CreatedAt are Unix seconds; 0 means that the key never expires.
	ExpiresAt int64 `dynamodbav:"expires_at,omitempty"`
	CreatedAt int64 `dynamodbav:"created_at"`
}

type accountItem struct {
	primaryKey
	Version          int           `dynamodbav:"v"`
	Name             string        `dynamodbav:"name"`
	DefaultWorkspace ids.Workspace `dynamodbav:"default_workspace,omitempty"`
	CreatedAt        int64         `dynamodbav:"created_at"`
}

type workspaceItem struct {
	primaryKey
	Version   int         `dynamodbav:"v"`
	Account   ids.Account `dynamodbav:"account"`
	Name      string      `dynamodbav:"name"`
	CreatedAt int64       `dynamodbav:"created_at"`
	// DeletedAt is absent as long as the workspace lives.
	DeletedAt int64 `dynamodbav:"deleted_at,omitempty"`
	// Next is the sort_order that the next credential of a provider gets.
	Next map[string]int64 `dynamodbav:"next"`
}

// check refuses a key that contradicts itself.
func (k keyItem) check() error {
	switch {
	case k.Version != itemVersion:
		return fmt.Errorf("item version %d", k.Version)
	case k.Account == "":
		return errors.New("no account")
	case k.Kind != Management && k.Kind != Standard:
		return errors.New("unknown kind")
	case k.Kind == Management && k.Workspace != "":
		return errors.New("a management key bound to a workspace")
	}
	return nil
}

// expired reports whether the key is past its end, which is the instant itself.
func (k keyItem) expired(now time.Time) bool {
	return k.ExpiresAt != 0 && !now.Before(time.Unix(k.ExpiresAt, 0))
}

// decode reads an item; its error never quotes a value.
func decode(item map[string]types.AttributeValue, into any) error {
	if err := attributevalue.UnmarshalMap(item, into); err != nil {
		var wrong *attributevalue.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return fmt.Errorf("stored %s where %s is expected", wrong.Value, wrong.Type)
		}
		return errors.New("unreadable item")
	}
	return nil
}
