// Command get-sync-job makes the same AWS calls as the function with that name, and nothing
// else.
package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/bench/baseline/minimal"
)

func main() {
	config := minimal.Config()
	db := dynamodb.NewFromConfig(config)
	minimal.Warm(config.HTTPClient, "DYNAMODB")
	minimal.Serve(func(ctx context.Context, e minimal.Event) error {
		table := e.Path["table"]
		key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: e.Path["id"]}}
		_, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key})
		return err
	})
}
