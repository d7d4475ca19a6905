package main

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/limits"
)

// deletion is a fake of storage with the result of one deletion. Every key is valid, and no
// rate is exceeded.
type deletion struct {
	workspaces

	receipt files.Receipt
	err     error
}

func (d deletion) Delete(context.Context, ids.Workspace, ids.File) (files.Receipt, error) {
	return d.receipt, d.err
}

func (deletion) Default(context.Context, auth.Caller) (ids.Workspace, error) { return "w", nil }

func (deletion) Take(context.Context, string, limits.Rate) (limits.Decision, error) {
	return limits.Decision{Allowed: true}, nil
}

// GetItem fakes DynamoDB for API keys.
func (deletion) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return &dynamodb.GetItemOutput{Item: kit.Row{
		"pk": in.Key["pk"], "sk": in.Key["sk"], "v": kit.Number("1"),
		"account": kit.Text("a"), "kind": kit.Text("standard"), "disabled": &types.AttributeValueMemberBOOL{},
	}}, nil
}

// The audit line of a deletion contains the file, its workspace, how many versions this request
// removed, and whether an answer was lost. A failed deletion has such a line too.
func TestAuditLine(t *testing.T) {
	broken := errors.New("no")
	for name, c := range map[string]struct {
		deletion
		status         int
		versions, lost any
	}{
		"deleted":         {deletion{receipt: files.Receipt{Versions: 1}}, http.StatusOK, 1.0, nil},
		"failed":          {deletion{err: broken}, http.StatusInternalServerError, nil, nil},
		"failed half way": {deletion{receipt: files.Receipt{Versions: 1}, err: broken}, http.StatusInternalServerError, 1.0, nil},
		"answer lost":     {deletion{receipt: files.Receipt{ResponseLost: true}, err: files.ErrNotFound}, http.StatusNotFound, nil, true},
	} {
		got := functest.Handle(t, auth.NewVerifier(c.deletion, "access"), operation(c.deletion, c.deletion, c.deletion), deleteRequest("", file).As("sbx_any"))
		if got.Status != c.status {
			t.Errorf("%s: status %d, want %d", name, got.Status, c.status)
		}
		for field, want := range map[string]any{
			"operation": "deleteFile", "file": string(file), "workspace": "w", "versions_removed": c.versions, "answer_lost": c.lost,
		} {
			if got.Audit[field] != want {
				t.Errorf("%s: %s is %v, want %v", name, field, got.Audit[field], want)
			}
		}
	}
}
