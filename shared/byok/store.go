package byok

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

type itemWriter interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Store creates credentials.
type Store struct {
	db          itemWriter
	credentials string
	control     string
	sealer      *seal.Sealer
	now         func() time.Time
}

// NewStore stores credentials in the table of that name, and the records of
// idempotent requests in the control table.
func NewStore(db itemWriter, credentials, control string, sealer *seal.Sealer) *Store {
	return &Store{db: db, credentials: credentials, control: control, sealer: sealer, now: time.Now}
}

// Draft is a credential that is sealed and not yet stored.
type Draft struct {
	Credential
	sealed seal.Sealed
}

// Seal gives a new credential its id, label and time, and seals its key for the
// workspace of the account. It stores nothing and may be repeated. The caller
// wipes the key.
func (s *Store) Seal(ctx context.Context, account ids.Account, workspace ids.Workspace, n New) (Draft, error) {
	c := Credential{
		Settings:  n.Settings,
		ID:        ids.New[ids.Credential](),
		Account:   account,
		Workspace: workspace,
		Label:     Label(n.Key.Reveal()),
		CreatedAt: s.now().UTC().Truncate(time.Second),
	}
	sealed, err := s.sealer.Seal(ctx, n.Key, c.binding())
	if err != nil {
		return Draft{}, err
	}
	return Draft{Credential: c, sealed: sealed}, nil
}

// binding is the place the key of the credential is sealed for.
func (c Credential) binding() seal.Binding {
	return seal.Binding{Account: c.Account, Workspace: c.Workspace, Credential: c.ID, Provider: c.Provider}
}

// Create stores the draft, all of it or nothing. After an error it may be stored:
// only a request with an idempotency key can be repeated without a second one.
func (s *Store) Create(ctx context.Context, d Draft) error {
	put := s.put(d)
	_, err := s.db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: put.TableName, Item: put.Item, ConditionExpression: put.ConditionExpression,
	})
	// The id is fresh: if it is taken, an earlier attempt of the SDK's was applied
	// and its answer lost.
	if _, taken := calls.ConditionFailed(err); err != nil && !taken {
		return fmt.Errorf("storing the credential: %w", err)
	}
	return nil
}

// put is the conditional write of a draft.
func (s *Store) put(d Draft) *types.Put {
	return &types.Put{
		TableName: &s.credentials, Item: encode(newItem(d)),
		ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}
}

// encode encodes a row of this package, a struct of strings, numbers, booleans, bytes
// and lists of strings: that cannot fail, and DynamoDB would refuse an empty row.
func encode(row any) map[string]types.AttributeValue {
	encoded, _ := attributevalue.MarshalMap(row)
	return encoded
}
