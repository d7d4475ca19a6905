package main

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

const (
	onlyAccount   = "0a1b2c3d-0000-4000-8000-000000000001"
	onlyWorkspace = "0a1b2c3d-0000-4000-8000-000000000002"
	onlyKey       = "sbx_only"
)

// fakeStore is a fake of storage. Everything in it belongs to the same account. It keeps
// the store's input, and records requests like DynamoDB.
type fakeStore struct {
	*byok.Store
	dynamodb.QueryAPIClient          // not called
	given                   byok.New // the last one; its key will be wiped
	key                     string   // the key of given
	workspace               ids.Workspace
	written                 int
	control                 map[string]kit.Row
}

func newFakeStore() *fakeStore {
	m := &fakeStore{control: map[string]kit.Row{}}
	m.Store = byok.NewStore(m, "credentials", "control", seal.NewSealer(m, "arn"))
	return m
}

// send sends a request with exactly this body.
func (m *fakeStore) send(t *testing.T, body []byte) functest.Answer {
	t.Helper()
	e := createRequest(nil).SendingBytes(body).As(onlyKey)
	return functest.Handle(t, auth.NewVerifier(m, "access"), operation(handler{workspaces: m, positions: m, keyring: m, credentials: m}), e)
}

// Seal keeps its input.
func (m *fakeStore) Seal(ctx context.Context, account ids.Account, workspace ids.Workspace, n byok.New) (byok.Draft, error) {
	m.given, m.key, m.workspace = n, string(n.Key.Reveal()), workspace
	return m.Store.Seal(ctx, account, workspace, n)
}

// Default returns the only workspace.
func (m *fakeStore) Default(context.Context, auth.Caller) (ids.Workspace, error) {
	return onlyWorkspace, nil
}

// Next gives every credential the first position.
func (m *fakeStore) Next(context.Context, ids.Account, ids.Workspace, string, int64) (auth.Position, error) {
	return auth.Position{}, nil
}

// Owned reports that every key is the account's.
func (m *fakeStore) Owned(_ context.Context, _ ids.Account, hashes []ids.KeyHash) (auth.Owned, error) {
	owned := auth.Owned{Hashes: map[ids.KeyHash]bool{}}
	for _, h := range hashes {
		owned.Hashes[h] = true
	}
	return owned, nil
}

// GetItem fakes DynamoDB for the one API key and for recorded requests.
func (m *fakeStore) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	pk := kit.TextOf(in.Key, "pk")
	if pk != "key#"+string(auth.HashKey(onlyKey)) {
		return &dynamodb.GetItemOutput{Item: m.control[pk]}, nil
	}
	return &dynamodb.GetItemOutput{Item: kit.Row{
		"pk": in.Key["pk"], "sk": in.Key["sk"], "v": kit.Number("1"),
		"account": kit.Text(onlyAccount), "kind": kit.Text("management"), "disabled": &types.AttributeValueMemberBOOL{},
	}}, nil
}

// PutItem fakes DynamoDB for a credential.
func (m *fakeStore) PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	m.written++
	return &dynamodb.PutItemOutput{}, nil
}

// TransactWriteItems fakes DynamoDB for a credential and its request.
func (m *fakeStore) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	m.written++
	record := in.TransactItems[1].Put.Item
	m.control[kit.TextOf(record, "pk")] = record
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

// GenerateDataKey fakes KMS; these tests open nothing.
func (m *fakeStore) GenerateDataKey(context.Context, *kms.GenerateDataKeyInput, ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error) {
	return &kms.GenerateDataKeyOutput{KeyId: aws.String("arn"), Plaintext: make([]byte, 32), CiphertextBlob: []byte("wrapped")}, nil
}
