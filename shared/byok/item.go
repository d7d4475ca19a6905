package byok

import (
	"errors"
	"strconv"
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

// ErrUnreadable means that a stored credential has a form or a key that this
// service never writes.
var ErrUnreadable = errors.New("the stored credential is unreadable or misplaced")

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
	Form      Form        `dynamodbav:"key_form,omitempty"`
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

// credential is the stored credential without its key.
func (i item) credential() Credential {
	return Credential{
		Settings: i.Settings, ID: i.ID, Account: i.Account, Workspace: i.Workspace,
		Label: i.Label, Form: i.Form, CreatedAt: time.Unix(i.CreatedAt, 0).UTC(), SortOrder: i.SortOrder,
	}
}

// stored is a row as it was read. If it is not readable, only its key is certain.
type stored struct {
	item
	readable bool
	whole    bool // see isWhole
}

func decode(row map[string]types.AttributeValue) (s stored) {
	if attributevalue.UnmarshalMap(row, &s.item) == nil {
		s.readable, s.whole = s.isSound(), isWhole(row)
		return s
	}
	s.item = item{} // the decoder may have set any field
	_ = attributevalue.UnmarshalMap(map[string]types.AttributeValue{"pk": row["pk"], "sk": row["sk"]}, &s.item)
	return s
}

// place is the workspace and the id in the row's key.
func (i item) place() (ids.Workspace, ids.Credential) {
	return ids.Workspace(strings.TrimPrefix(i.PK, partition(""))), ids.Credential(strings.TrimPrefix(i.SK, sortKey("")))
}

// isSound reports whether the row has this version, and is stored at its own place.
func (i item) isSound() bool {
	return i.Version == itemVersion && i.ID != "" && i.Provider != "" && i.PK == partition(i.Workspace) && i.SK == sortKey(i.ID)
}

// project makes the projection of these attributes. A "." separates the parts of a
// path. Some names are reserved words of DynamoDB, so each one has an alias.
func project(paths ...string) (expression string, names map[string]string) {
	names = map[string]string{}
	aliases := map[string]string{}
	var wanted []string
	for _, path := range paths {
		var parts []string
		for part := range strings.SplitSeq(path, ".") {
			if aliases[part] == "" {
				aliases[part] = "#a" + strconv.Itoa(len(aliases))
				names[aliases[part]] = part
			}
			parts = append(parts, aliases[part])
		}
		wanted = append(wanted, strings.Join(parts, "."))
	}
	return strings.Join(wanted, ", "), names
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

func primaryKey(w ids.Workspace, id ids.Credential) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": calls.Text(partition(w)), "sk": calls.Text(sortKey(id))}
}
