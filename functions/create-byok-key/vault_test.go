package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// vault is a stage with an eye for what is stored.
type vault struct {
	*functest.Env
}

// row is a credential as the table holds it, read by the layout alone.
type row struct {
	Version   int            `dynamodbav:"v"`
	ID        ids.Credential `dynamodbav:"id"`
	Account   ids.Account    `dynamodbav:"account"`
	Workspace ids.Workspace  `dynamodbav:"workspace"`
	Provider  string         `dynamodbav:"provider"`
	Name      string         `dynamodbav:"name"`
	Label     string         `dynamodbav:"label"`
	SortOrder int64          `dynamodbav:"sort_order"`
	Hashes    []string       `dynamodbav:"allowed_api_key_hashes"`
	Models    []string       `dynamodbav:"allowed_models"`
	Users     []string       `dynamodbav:"allowed_user_ids"`
	Seal      struct {
		Format     int    `dynamodbav:"format"`
		KeyARN     string `dynamodbav:"key_arn"`
		WrappedKey []byte `dynamodbav:"wrapped_key"`
		Nonce      []byte `dynamodbav:"nonce"`
		Ciphertext []byte `dynamodbav:"ciphertext"`
	} `dynamodbav:"seal"`
}

// stored reads the credentials of a workspace and checks that each of them is
// whole: its seal opens where it stands and gives the key.
func (v *vault) stored(t testing.TB, w ids.Workspace, key string) []row {
	t.Helper()
	out, err := v.DB.Query(t.Context(), &dynamodb.QueryInput{
		TableName: &v.Engines.Tables.Credentials, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("pk = :pk"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":pk": &types.AttributeValueMemberS{Value: "workspace#" + string(w)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	if err := attributevalue.UnmarshalListOfMaps(out.Items, &rows); err != nil {
		t.Fatal(err)
	}
	opener := seal.NewOpener(v.KMS, v.Engines.KeyARN)
	taken := map[int64]bool{}
	for _, r := range rows {
		opened, err := opener.Open(t.Context(), seal.Sealed(r.Seal), seal.Binding{
			Account: r.Account, Workspace: r.Workspace, Credential: r.ID, Provider: r.Provider,
		})
		if err != nil || string(opened.Reveal()) != key || r.Version != 1 || r.Workspace != w {
			t.Errorf("credential %+v opens as %q, %v", r, opened.Reveal(), err)
		}
		if taken[r.SortOrder] {
			t.Errorf("sort_order %d was given out twice", r.SortOrder)
		}
		taken[r.SortOrder] = true
	}
	return rows
}

// record is where the memory of an idempotent request lies.
func (v *vault) record(token, idempotencyKey string) map[string]types.AttributeValue {
	id := byok.NewRequestID(string(auth.HashKey(token)), idempotencyKey)
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: string(id)}}
}

// remembered reports whether the request is remembered.
func (v *vault) remembered(t testing.TB, token, idempotencyKey string) bool {
	t.Helper()
	out, err := v.DB.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &v.Engines.Tables.Control, Key: v.record(token, idempotencyKey), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item != nil
}

// expire lets the memory of the request expire, without its being removed.
func (v *vault) expire(t testing.TB, token, idempotencyKey string) {
	t.Helper()
	_, err := v.DB.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &v.Engines.Tables.Control, Key: v.record(token, idempotencyKey),
		UpdateExpression: aws.String("SET exp = :past"), ConditionExpression: aws.String("attribute_exists(pk)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":past": &types.AttributeValueMemberN{Value: "1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
}
