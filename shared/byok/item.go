package byok

import (
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

const itemVersion = 1

// item is a credential as stored, under pk = workspace#<id>,
// sk = credential#<id>.
type item struct {
	PK        string         `dynamodbav:"pk"`
	SK        string         `dynamodbav:"sk"`
	Version   int            `dynamodbav:"v"`
	ID        ids.Credential `dynamodbav:"id"`
	Account   ids.Account    `dynamodbav:"account"`
	Workspace ids.Workspace  `dynamodbav:"workspace"`
	Settings
	Label     string      `dynamodbav:"label"`
	Form      Form        `dynamodbav:"key_form"`
	CreatedAt int64       `dynamodbav:"created_at"` // Unix seconds
	SortOrder int64       `dynamodbav:"sort_order"`
	Seal      seal.Sealed `dynamodbav:"seal"`
}

func partition(w ids.Workspace) string { return "workspace#" + string(w) }

func sortKey(id ids.Credential) string { return "credential#" + string(id) }

func newItem(draft Draft) item {
	return item{
		PK: partition(draft.Workspace), SK: sortKey(draft.ID), Version: itemVersion,
		ID: draft.ID, Account: draft.Account, Workspace: draft.Workspace,
		Settings: draft.Settings, Label: draft.Label, Form: draft.Form,
		CreatedAt: draft.CreatedAt.Unix(), SortOrder: draft.SortOrder, Seal: draft.sealed,
	}
}

// row is an item as it was read.
type row struct {
	item
	trust trust
	newer bool // a newer version of this service wrote it
}

// trust is how far a row can be relied on. Each level includes those before it.
type trust int

const (
	damaged trust = iota // only its key is certain
	decoded              // each attribute that it has is of its type
	sound                // it has this version and its own primary key: its seal may be moved
	whole                // it has each attribute that decides about a request: a router may use it
)

func (r row) is(t trust) bool { return r.trust >= t }

func decodeAll(items []map[string]types.AttributeValue) []row {
	rows := make([]row, len(items))
	for i, attributes := range items {
		rows[i] = decode(attributes)
	}
	return rows
}

func decode(attributes map[string]types.AttributeValue) row {
	r := row{newer: calls.IsNewer(attributes, itemVersion)}
	switch damage := calls.Decode(attributes, &r.item); {
	case damage != nil:
		r.trust = damaged
	case !r.isSound():
		r.trust = decoded
	case !isWhole(attributes):
		r.trust = sound
	default:
		r.trust = whole
	}
	return r
}

// isWhole reports whether a row has every attribute that decides about a request.
// A missing flag would be read as false, and a missing list as one that restricts
// nothing.
func isWhole(attributes map[string]types.AttributeValue) bool {
	for _, name := range []string{"disabled", "is_byok_only", "is_fallback", "is_required"} {
		if _, ok := attributes[name].(*types.AttributeValueMemberBOOL); !ok {
			return false
		}
	}
	for _, name := range []string{"allowed_api_key_hashes", "allowed_models", "allowed_user_ids"} {
		switch list := attributes[name].(type) {
		case *types.AttributeValueMemberNULL:
		case *types.AttributeValueMemberL:
			for _, element := range list.Value {
				if _, ok := element.(*types.AttributeValueMemberS); !ok {
					return false
				}
			}
		default:
			return false
		}
	}
	_, ok := attributes["sort_order"].(*types.AttributeValueMemberN)
	return ok
}

// damage is the error for a row that is trusted too little.
func (i item) damage() error {
	return &calls.Damage{Kind: "credential", ID: strings.TrimPrefix(i.SK, sortKey("")), Wrong: errors.New("damaged or misplaced, in " + strings.TrimSuffix(i.PK, "#"))}
}

func (i item) credential() Credential {
	if isAPIKeyLabel(i.Label) {
		i.Form = SignalboxKey
	}
	return Credential{
		Settings: i.Settings, ID: i.ID, Account: i.Account, Workspace: i.Workspace,
		Label: i.Label, Form: i.Form, CreatedAt: time.Unix(i.CreatedAt, 0).UTC(), SortOrder: i.SortOrder,
	}
}

// isSound reports whether the row has this version and its own primary key.
func (i item) isSound() bool {
	return i.Version == itemVersion && i.ID != "" && i.Provider != "" && i.PK == partition(i.Workspace) && i.SK == sortKey(i.ID)
}

// queryOf is the query for all credentials of the workspace, strongly consistent.
func queryOf(table string, w ids.Workspace) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("pk = :pk AND begins_with(sk, :credential)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":pk":         calls.Text(partition(w)),
			":credential": calls.Text(sortKey("")),
		},
	}
}
