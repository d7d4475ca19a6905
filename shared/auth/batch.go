package auth

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
)

// batchLimit is how many keys DynamoDB takes in one BatchGetItem.
const batchLimit = 100

type batchGetter interface {
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
}

// batchGet reads at most batchLimit items, strongly consistent; what DynamoDB
// leaves unprocessed is asked for again until the context ends. Absent items are
// left out, and the order is not that of the keys.
func batchGet(ctx context.Context, db batchGetter, table string, keys []map[string]types.AttributeValue) ([]map[string]types.AttributeValue, error) {
	var items []map[string]types.AttributeValue
	for attempt := 0; len(keys) > 0; attempt++ {
		if attempt > 0 {
			if err := calls.Pause(ctx, attempt); err != nil {
				return nil, err
			}
		}
		out, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{table: {Keys: keys, ConsistentRead: aws.Bool(true)}},
		})
		if err != nil {
			return nil, err
		}
		if out.Responses == nil && len(out.UnprocessedKeys) == 0 {
			return nil, errors.New("an answer that says nothing of any key")
		}
		items = append(items, out.Responses[table]...)
		keys = out.UnprocessedKeys[table].Keys
	}
	return items, nil
}
