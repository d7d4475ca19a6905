package byok

import (
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
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

func newItem(d Draft) item {
	return item{
		PK: partition(d.Workspace), SK: sortKey(d.ID), Version: itemVersion,
		ID: d.ID, Account: d.Account, Workspace: d.Workspace,
		Settings: d.Settings, Label: d.Label, Form: d.Form,
		CreatedAt: d.CreatedAt.Unix(), SortOrder: d.SortOrder, Seal: d.sealed,
	}
}

// row is an item as it was read. If it cannot be decoded, only its key is set. List needs
// a decoded row, ListAll and Rewrap a sound one (isSound), ReadAll, ReadSettings and Survey a
// sound and whole one.
type row struct {
	item
	decoded bool
	whole   bool // see isWhole
	newer   bool // a newer version of this service wrote it
}

func decodeAll(items []map[string]types.AttributeValue) []row {
	rows := make([]row, len(items))
	for i, attributes := range items {
		rows[i] = decode(attributes)
	}
	return rows
}

func decode(attributes map[string]types.AttributeValue) row {
	var i, key item
	newer := calls.IsNewer(attributes, itemVersion)
	if attributevalue.UnmarshalMap(attributes, &i) == nil {
		return row{item: i, decoded: true, whole: isWhole(attributes), newer: newer}
	}
	_ = attributevalue.UnmarshalMap(map[string]types.AttributeValue{"pk": attributes["pk"], "sk": attributes["sk"]}, &key)
	return row{item: key, newer: newer} // the decoder may have set any field of i
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

// damage is the error for a row that is not decoded, not sound or not whole.
func (i item) damage() error {
	return &calls.Damage{Kind: "credential", ID: strings.TrimPrefix(i.SK, sortKey("")), Wrong: errors.New("it is incomplete, of another form or misplaced, in " + strings.TrimSuffix(i.PK, "#"))}
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
