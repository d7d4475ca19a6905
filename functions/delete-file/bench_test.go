package main

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/bench/instant"
	"signalbox.dev/shared/files"
)

func BenchmarkDelete(b *testing.B) {
	b.Run("handler", func(b *testing.B) {
		event := instant.Event("DELETE", "/api/v1/files/{file_id}", "", map[string]string{"file_id": instant.File}, nil)
		instant.Measure(b, build, event, "200")
	})
	b.Run("calls", func(b *testing.B) { instant.MeasureCalls(b, bareCalls) })
}

func bareCalls(config aws.Config) func(context.Context) error {
	db, objects := dynamodb.NewFromConfig(config), s3.NewFromConfig(config)
	table, key := "TABLE", files.Key(instant.Workspace, instant.File)
	at := func(pk string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}}
	}
	return func(ctx context.Context) error {
		_, get := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, ConsistentRead: aws.Bool(true), Key: at("key#")})
		_, workspace := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, ConsistentRead: aws.Bool(true), Key: at("workspace#")})
		_, limit := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &table, Key: at("limit#"), UpdateExpression: aws.String("SET tat = :next, exp = :exp"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":next": &types.AttributeValueMemberN{Value: "1"}, ":exp": &types.AttributeValueMemberN{Value: "1"}},
		})
		_, remove := objects.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &table, Key: &key, IfMatch: aws.String("*")})
		return errors.Join(get, workspace, limit, remove)
	}
}
