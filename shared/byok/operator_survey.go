package byok

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/shared/ids"
)

// surveyPage is how many rows one Scan reads at most; DynamoDB ends a page at 1 MB.
const surveyPage = 500

type scanner interface {
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// Placement is the position of a stored credential in its workspace and provider.
// Of an unreadable one only Workspace and ID are certain.
type Placement struct {
	Workspace  ids.Workspace
	ID         ids.Credential
	Account    ids.Account
	Provider   string
	SortOrder  int64
	Unreadable bool
}

// Survey reads the placement of every credential in the credentials table. It reads no
// seal. It changes nothing.
func Survey(ctx context.Context, db scanner, table string) ([]Placement, error) {
	projection, names := project("pk", "sk", "v", "id", "account", "workspace", "provider", "sort_order")
	pages := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{
		TableName: &table, ConsistentRead: aws.Bool(true), Limit: aws.Int32(surveyPage),
		ProjectionExpression: &projection, ExpressionAttributeNames: names,
	})
	var placements []Placement
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading table %s: %w", table, err)
		}
		for _, stored := range page.Items {
			var row item
			err := attributevalue.UnmarshalMap(stored, &row)
			if err != nil {
				row = item{} // the decoder stopped somewhere, in the order of a map
			}
			var at struct {
				PK string `dynamodbav:"pk"`
				SK string `dynamodbav:"sk"`
			}
			_ = attributevalue.UnmarshalMap(stored, &at) // the key schema makes both strings
			placements = append(placements, Placement{
				Workspace: ids.Workspace(strings.TrimPrefix(at.PK, partition(""))), ID: ids.Credential(strings.TrimPrefix(at.SK, sortKey(""))),
				Account: row.Account, Provider: row.Provider, SortOrder: row.SortOrder,
				Unreadable: err != nil || !row.isSound(),
			})
		}
	}
	return placements, nil
}
