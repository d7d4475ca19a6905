package byok

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// writeBatch is how many items DynamoDB deletes in one BatchWriteItem.
const writeBatch = 25

// Purge removes every credential of the workspace, sealed keys and all, and
// tells how many; whoever calls it makes sure that the workspace is deleted.
// After an error some may be left, and Purge again removes them.
func (m *Manager) Purge(ctx context.Context, w ids.Workspace) (removed int, err error) {
	in := queryOf(m.table, w)
	in.ProjectionExpression = aws.String("pk, sk")
	pages := dynamodb.NewQueryPaginator(m.db, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return removed, fmt.Errorf("listing credentials to purge: %w", err)
		}
		for batch := range slices.Chunk(page.Items, writeBatch) {
			if err := m.remove(ctx, batch); err != nil {
				return removed, fmt.Errorf("purging credentials: %w", err)
			}
			removed += len(batch)
		}
	}
	return removed, nil
}

// remove deletes the items under these keys; what DynamoDB leaves unprocessed is
// asked for again until the context ends.
func (m *Manager) remove(ctx context.Context, keys []map[string]types.AttributeValue) error {
	var requests []types.WriteRequest
	for _, key := range keys {
		requests = append(requests, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}})
	}
	for attempt := 1; ; attempt++ {
		out, err := m.db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{m.table: requests},
		})
		if err != nil {
			return err
		}
		if requests = out.UnprocessedItems[m.table]; len(requests) == 0 {
			return nil
		}
		if err := calls.Pause(ctx, attempt); err != nil {
			return err
		}
	}
}

// inOrder is the order in which the credentials of a workspace are tried.
func inOrder(a, b Credential) int {
	return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.SortOrder, b.SortOrder))
}
