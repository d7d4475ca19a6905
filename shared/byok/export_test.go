package byok

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// At gives the store a clock.
func (s *Store) At(now func() time.Time) *Store {
	s.now = now
	return s
}

// Stored reads the rows of a workspace: what each credential is, and its seal.
func (s *Store) Stored(ctx context.Context, db *dynamodb.Client, w ids.Workspace) ([]Credential, []seal.Sealed, error) {
	out, err := db.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.credentials, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("pk = :pk"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":pk": &types.AttributeValueMemberS{Value: partition(w)}},
	})
	if err != nil {
		return nil, nil, err
	}
	var items []item
	if err := attributevalue.UnmarshalListOfMaps(out.Items, &items); err != nil {
		return nil, nil, err
	}
	var credentials []Credential
	var seals []seal.Sealed
	for _, i := range items {
		credentials, seals = append(credentials, i.credential()), append(seals, i.sealed())
	}
	return credentials, seals, nil
}

// Binding is the place a credential's key is sealed for.
func (c Credential) Binding() seal.Binding { return c.binding() }
