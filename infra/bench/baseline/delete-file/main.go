// Command delete-file makes the same AWS calls as the function with that name, and nothing
// else.
package main

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/infra/bench/baseline/minimal"
)

func main() {
	config := minimal.Config()
	db, objects := dynamodb.NewFromConfig(config), s3.NewFromConfig(config)
	minimal.Warm(config.HTTPClient, "DYNAMODB", "S3")
	minimal.Serve(func(ctx context.Context, e minimal.Event) error {
		name := e.Path["file_id"]
		key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: name}}
		_, get := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &name, Key: key})
		_, update := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: &name, Key: key})
		_, remove := objects.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &name, Key: &name})
		_, list := objects.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &name})
		_, removeAll := objects.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &name, Delete: &s3types.Delete{Objects: []s3types.ObjectIdentifier{{Key: &name}}}})
		return errors.Join(get, update, remove, list, removeAll)
	})
}
