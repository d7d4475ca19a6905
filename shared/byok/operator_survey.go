package byok

import (
	"context"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/shared/ids"
)

// surveyPage is how many rows one Scan reads at most; DynamoDB ends a page at 1 MB.
const surveyPage = 500

// scan yields these attributes of all rows of the table, page by page, strongly
// consistent. It ends after an error.
func scan(ctx context.Context, db dynamodb.ScanAPIClient, in *dynamodb.ScanInput, attributes ...string) iter.Seq2[[]stored, error] {
	projection, names := project(attributes...)
	in.ConsistentRead, in.ProjectionExpression, in.ExpressionAttributeNames = aws.Bool(true), &projection, names
	pages := dynamodb.NewScanPaginator(db, in)
	return func(yield func([]stored, error) bool) {
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(nil, fmt.Errorf("reading table %s: %w", *in.TableName, err))
				return
			}
			rows := make([]stored, len(page.Items))
			for i, item := range page.Items {
				rows[i] = decode(item)
			}
			if !yield(rows, nil) {
				return
			}
		}
	}
}

// Placement is the position of a stored credential in its workspace and provider.
// If it is unreadable, or lacks an attribute that a router needs, only Workspace and ID are
// certain.
type Placement struct {
	Workspace ids.Workspace
	ID        ids.Credential
	Account   ids.Account
	Provider  string
	SortOrder int64
	// AllowedAPIKeyHashes is nil if every API key may use the credential.
	AllowedAPIKeyHashes []string
	Unreadable          bool
}

// Survey reads the placement of every credential in the credentials table. It reads no
// seal. It changes nothing.
func Survey(ctx context.Context, db dynamodb.ScanAPIClient, table string) ([]Placement, error) {
	var placements []Placement
	in := &dynamodb.ScanInput{TableName: &table, Limit: aws.Int32(surveyPage)}
	for rows, err := range scan(ctx, db, in, shown()...) {
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			workspace, id := row.place()
			placements = append(placements, Placement{workspace, id, row.Account, row.Provider, row.SortOrder, row.AllowedAPIKeyHashes, !row.readable || !row.whole})
		}
	}
	return placements, nil
}
