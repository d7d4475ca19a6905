// Command create-byok-key makes the same AWS calls as the function with that name, and
// nothing else.
package main

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/infra/bench/baseline/minimal"
)

func main() {
	config := minimal.Config()
	db, keys := dynamodb.NewFromConfig(config), kms.NewFromConfig(config)
	minimal.Warm(config.HTTPClient, "DYNAMODB", "KMS")
	minimal.Serve(func(ctx context.Context, e minimal.Event) error {
		table := e.Path["table"]
		key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: e.Body}}
		_, get := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key})
		_, batch := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: {Keys: []map[string]types.AttributeValue{key}}}})
		_, update := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: &table, Key: key})
		_, dataKey := keys.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{KeyId: &table})
		_, put := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: key})
		_, transact := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{TableName: &table, Item: key}}}})
		return errors.Join(get, batch, update, dataKey, put, transact)
	})
}
