package instant

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Calls makes bare AWS calls, as a minimal program does.
type Calls struct {
	DB  *dynamodb.Client
	KMS *kms.Client
	S3  *s3.Client
}

var table = aws.String("TABLE") // no call cares which

func newCalls(config aws.Config) Calls {
	return Calls{dynamodb.NewFromConfig(config), kms.NewFromConfig(config), s3.NewFromConfig(config)}
}

// Get reads an item.
func (c Calls) Get(ctx context.Context, pk string) error {
	_, err := c.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: table, ConsistentRead: aws.Bool(true), Key: key(pk)})
	return err
}

// Update updates an item; the names may be nil.
func (c Calls) Update(ctx context.Context, pk, expression string, names map[string]string) error {
	one := &types.AttributeValueMemberN{Value: "1"}
	_, err := c.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: table, Key: key(pk), UpdateExpression: &expression, ExpressionAttributeNames: names,
		ExpressionAttributeValues: map[string]types.AttributeValue{":a": one, ":b": one},
	})
	return err
}

// Put creates an item.
func (c Calls) Put(ctx context.Context, item map[string]types.AttributeValue) error {
	_, err := c.DB.PutItem(ctx, &dynamodb.PutItemInput{TableName: table, Item: item, ConditionExpression: aws.String("attribute_not_exists(pk)")})
	return err
}

// PutTwo creates two items in one transaction.
func (c Calls) PutTwo(ctx context.Context, item map[string]types.AttributeValue) error {
	put := types.TransactWriteItem{Put: &types.Put{TableName: table, Item: item, ConditionExpression: aws.String("attribute_not_exists(pk)")}}
	_, err := c.DB.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put, put}})
	return err
}

// GenerateDataKey makes a data key for a credential.
func (c Calls) GenerateDataKey(ctx context.Context) error {
	_, err := c.KMS.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId: aws.String(KeyARN), KeySpec: kmstypes.DataKeySpecAes256,
		EncryptionContext: map[string]string{"purpose": "signalbox/credential", "account": Account, "workspace": Workspace, "credential": Job, "provider": "openai"},
	})
	return err
}

// Delete deletes an object.
func (c Calls) Delete(ctx context.Context, name string) error {
	_, err := c.S3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: table, Key: &name, IfMatch: aws.String("*")})
	return err
}

func key(pk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}}
}
