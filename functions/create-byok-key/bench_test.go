package main

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/bench/instant"
	"signalbox.dev/infra/testkit"
)

const benchBody = `{"provider":"openai","key":"sk-proj-0123456789abcdefAbCd","name":"first","workspace_id":"` + instant.Workspace + `"}`

func BenchmarkCreate(b *testing.B) {
	item := benchItem(b)
	instant.Compare(b, build, instant.Event("POST", "/api/v1/byok", benchBody, nil, nil), "201", func(ctx context.Context, c instant.Calls) error {
		return errors.Join(c.Get(ctx, "key#"), claimPosition(ctx, c), c.GenerateDataKey(ctx), c.Put(ctx, item))
	})
}

func BenchmarkCreateOnce(b *testing.B) {
	item := benchItem(b)
	event := instant.Event("POST", "/api/v1/byok", benchBody, nil, map[string]string{"Idempotency-Key": "bench"})
	instant.Compare(b, build, event, "201", func(ctx context.Context, c instant.Calls) error {
		return errors.Join(c.Get(ctx, "key#"), c.Get(ctx, "idem#"), claimPosition(ctx, c), c.GenerateDataKey(ctx), c.PutTwo(ctx, item))
	})
}

func claimPosition(ctx context.Context, c instant.Calls) error {
	names := map[string]string{"#next": "next", "#provider": "openai"}
	return c.Update(ctx, "workspace#", "SET #next.#provider = if_not_exists(#next.#provider, :a) + :b", names)
}

// benchItem is a credential as the table contains it.
func benchItem(b *testing.B) map[string]types.AttributeValue {
	b.Helper()
	item, err := attributevalue.MarshalMap(map[string]any{
		"pk": "workspace#" + instant.Workspace, "sk": "credential#" + instant.Job, "v": 1, "id": instant.Job,
		"account": instant.Account, "workspace": instant.Workspace, "provider": "openai", "name": "first", "label": "sk-...AbCd",
		"created_at": 1, "sort_order": 0, "disabled": false, "is_byok_only": false, "is_fallback": false, "is_required": false,
		"allowed_api_key_hashes": nil, "allowed_models": nil, "allowed_user_ids": nil,
		"seal": map[string]any{"format": 1, "key_arn": instant.KeyARN, "wrapped_key": make([]byte, 180), "nonce": make([]byte, 12), "ciphertext": make([]byte, 44)},
	})
	testkit.Must(b, err)
	return item
}
