package main

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/bench/instant"
)

func BenchmarkRead(b *testing.B) {
	b.Run("handler", func(b *testing.B) {
		event := instant.Event("GET", "/api/v1/scim/sync-jobs/{id}", "", map[string]string{"id": instant.Job}, nil)
		instant.Measure(b, build, event, "200")
	})
	b.Run("calls", func(b *testing.B) {
		instant.MeasureCalls(b, func(config aws.Config) func(context.Context) error {
			db := dynamodb.NewFromConfig(config)
			get := func(ctx context.Context, table, pk string) error {
				_, err := db.GetItem(ctx, &dynamodb.GetItemInput{
					TableName: &table, ConsistentRead: aws.Bool(true),
					Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}},
				})
				return err
			}
			return func(ctx context.Context) error {
				return errors.Join(get(ctx, "ACCESS_TABLE", "key#"), get(ctx, "SYNC_JOBS_TABLE", "job#"+instant.Job))
			}
		})
	})
}
