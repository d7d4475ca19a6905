package main

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"

	"signalbox.dev/infra/bench/instant"
)

const benchBody = `{"provider":"openai","key":"sk-proj-0123456789abcdefAbCd","name":"first","workspace_id":"` + instant.Workspace + `"}`

func BenchmarkCreate(b *testing.B) {
	b.Run("handler", func(b *testing.B) {
		instant.Measure(b, build, instant.Event("POST", "/api/v1/byok", benchBody, nil, nil), "201")
	})
	b.Run("calls", func(b *testing.B) {
		instant.MeasureCalls(b, func(config aws.Config) func(context.Context) error {
			c := newBare(b, config)
			return func(ctx context.Context) error {
				return errors.Join(c.get(ctx, "key#"), c.claim(ctx), c.dataKey(ctx), c.put(ctx))
			}
		})
	})
}

func BenchmarkCreateOnce(b *testing.B) {
	b.Run("handler", func(b *testing.B) {
		event := instant.Event("POST", "/api/v1/byok", benchBody, nil, map[string]string{"Idempotency-Key": "bench"})
		instant.Measure(b, build, event, "201")
	})
	b.Run("calls", func(b *testing.B) {
		instant.MeasureCalls(b, func(config aws.Config) func(context.Context) error {
			c := newBare(b, config)
			return func(ctx context.Context) error {
				return errors.Join(c.get(ctx, "key#"), c.get(ctx, "idem#"), c.claim(ctx), c.dataKey(ctx), c.transact(ctx))
			}
		})
	})
}

// bare makes the calls of the function and nothing else.
type bare struct {
	db    *dynamodb.Client
	kms   *kms.Client
	table string
	key   map[string]types.AttributeValue
	item  map[string]types.AttributeValue
}

func newBare(b *testing.B, config aws.Config) *bare {
	b.Helper()
	item, err := attributevalue.MarshalMap(map[string]any{
		"pk": "workspace#" + instant.Workspace, "sk": "credential#" + instant.Job, "v": 1, "id": instant.Job,
		"account": instant.Account, "workspace": instant.Workspace, "provider": "openai", "name": "first", "label": "sk-...AbCd",
		"created_at": 1, "sort_order": 0, "disabled": false, "is_byok_only": false, "is_fallback": false, "is_required": false,
		"allowed_api_key_hashes": nil, "allowed_models": nil, "allowed_user_ids": nil,
		"seal": map[string]any{"format": 1, "key_arn": instant.KeyARN, "wrapped_key": make([]byte, 180), "nonce": make([]byte, 12), "ciphertext": make([]byte, 44)},
	})
	if err != nil {
		b.Fatal(err)
	}
	return &bare{
		db: dynamodb.NewFromConfig(config), kms: kms.NewFromConfig(config), table: "TABLE",
		key: map[string]types.AttributeValue{"pk": item["pk"], "sk": item["sk"]}, item: item,
	}
}

func (c *bare) get(ctx context.Context, pk string) error {
	_, err := c.db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &c.table, ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}},
	})
	return err
}

func (c *bare) claim(ctx context.Context) error {
	_, err := c.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &c.table, Key: c.key, UpdateExpression: aws.String("SET #next.#provider = if_not_exists(#next.#provider, :zero) + :one"),
		ExpressionAttributeNames:  map[string]string{"#next": "next", "#provider": "openai"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":zero": &types.AttributeValueMemberN{Value: "0"}, ":one": &types.AttributeValueMemberN{Value: "1"}},
	})
	return err
}

func (c *bare) dataKey(ctx context.Context) error {
	_, err := c.kms.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId: aws.String(instant.KeyARN), KeySpec: kmstypes.DataKeySpecAes256,
		EncryptionContext: map[string]string{"purpose": "signalbox/credential", "account": instant.Account, "workspace": instant.Workspace, "credential": instant.Job, "provider": "openai"},
	})
	return err
}

func (c *bare) put(ctx context.Context) error {
	_, err := c.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &c.table, Item: c.item, ConditionExpression: aws.String("attribute_not_exists(pk)")})
	return err
}

func (c *bare) transact(ctx context.Context) error {
	put := types.TransactWriteItem{Put: &types.Put{TableName: &c.table, Item: c.item, ConditionExpression: aws.String("attribute_not_exists(pk)")}}
	_, err := c.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put, put}})
	return err
}
