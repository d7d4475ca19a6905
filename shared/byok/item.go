package byok

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
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

// isSound reports whether the row has this version, and is stored at its own place.
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
