package main

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/limits"
)

const (
	ownAccount     = "0a1b2c3d-0000-4000-8000-000000000001"
	ownWorkspace   = "0a1b2c3d-0000-4000-8000-000000000002"
	ownDefault     = "0a1b2c3d-0000-4000-8000-000000000003"
	foreignAccount = "0a1b2c3d-0000-4000-8000-000000000004"
	foreignPlace   = "0a1b2c3d-0000-4000-8000-000000000005"
	ownKey         = "sbx_own"
)

// storage is a fake that contains two accounts, a key, and every file. It records its
// calls.
type storage struct {
	s3.ListObjectVersionsAPIClient
	workspaces, deleted []string
}

// GetItem is DynamoDB's, for the access table.
func (s *storage) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	row := func(name, value string) (*dynamodb.GetItemOutput, error) {
		return &dynamodb.GetItemOutput{Item: testkit.Row{
			"pk": in.Key["pk"], "sk": in.Key["sk"], "v": testkit.Number("1"),
			"kind": testkit.Text("standard"), "disabled": &types.AttributeValueMemberBOOL{}, name: testkit.Text(value),
		}}, nil
	}
	pk := testkit.TextOf(in.Key, "pk")
	if workspace, ok := strings.CutPrefix(pk, "workspace#"); ok {
		s.workspaces = append(s.workspaces, workspace)
	}
	switch pk {
	case "key#" + string(auth.HashKey(ownKey)), "workspace#" + ownWorkspace:
		return row("account", ownAccount)
	case "workspace#" + foreignPlace:
		return row("account", foreignAccount)
	case "account#" + ownAccount:
		return row("default_workspace", ownDefault)
	default:
		return &dynamodb.GetItemOutput{}, nil
	}
}

// DeleteObject is S3's, on a bucket without versions.
func (s *storage) DeleteObject(_ context.Context, in *s3.DeleteObjectInput, _ ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	s.deleted = append(s.deleted, *in.Key)
	out := new(s3.DeleteObjectOutput)
	awsmiddleware.SetRequestIDMetadata(&out.ResultMetadata, "S3's own")
	return out, nil
}

// DeleteObjects is S3's, which is not called without versions.
func (s *storage) DeleteObjects(context.Context, *s3.DeleteObjectsInput, ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error) {
	panic("a bucket without versions was asked for versions")
}

// Take allows every request.
func (s *storage) Take(context.Context, string, limits.Rate) (limits.Decision, error) {
	return limits.Decision{Allowed: true, Burst: 1}, nil
}

// A file is deleted if and only if its id has the contract's shape and at most one
// workspace is named, the caller's. Exactly that file of that workspace is deleted.
// Storage is not asked for a file or workspace that cannot exist.
func FuzzRequest(f *testing.F) {
	for _, file := range []string{"file_a", "file_Az09_-", "file_" + strings.Repeat("x", 200), "file_" + strings.Repeat("x", 201), "file_", "file_..", "file_a/../../" + foreignPlace + "/b", "file_a%2Fb", "file_\x00", "file_\u0661", ""} {
		f.Add(file, uint8(0), "", "")
	}
	for _, named := range []string{ownWorkspace, strings.ToUpper(ownWorkspace), foreignPlace, ownDefault, "{" + ownWorkspace + "}", ownWorkspace + "/..", "", "..", "null"} {
		f.Add("file_a", uint8(1), named, "")
		f.Add("file_a", uint8(2), named, ownWorkspace)
		f.Add("file_", uint8(1), named, "")
		f.Add("file_a", uint8(2), ownWorkspace, named)
	}
	f.Fuzz(func(t *testing.T, file string, count uint8, first, second string) {
		named := []string{first, second}[:count%3]
		s := &storage{}
		got := functest.Handle(t, auth.NewVerifier(s, "access"), operation(s, auth.NewWorkspaces(s, "access"), files.NewStore(s, "files")),
			deleteRequest("", ids.File(file)).As(ownKey).Asking("workspace_id", named...).Asking("other", foreignPlace))
		want := outcomeOf(file, named)
		if diff := cmp.Diff(want, outcome{got.Status, s.workspaces, s.deleted}, cmp.AllowUnexported(outcome{})); diff != "" {
			t.Fatalf("file %q of %q (-want +got):\n%s", file, named, diff)
		}
		if got.Status == http.StatusOK && got.Body != `{"id":"`+file+`","type":"file_deleted"}` {
			t.Fatalf("body %s", got.Body)
		}
	})
}

// outcome is the status of a request and its calls to storage.
type outcome struct {
	status     int
	workspaces []string // looked up
	deleted    []string // keys in the bucket
}

// outcomeOf returns the outcome by the contract.
func outcomeOf(file string, named []string) outcome {
	absent := outcome{status: http.StatusNotFound}
	if !regexp.MustCompile(`^file_[A-Za-z0-9_-]{1,200}$`).MatchString(file) || len(named) > 1 {
		return absent
	}
	if len(named) == 0 {
		return outcome{http.StatusOK, nil, []string{"files/" + ownDefault + "/" + file}}
	}
	if !regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`).MatchString(named[0]) {
		return absent
	}
	workspace := strings.ToLower(named[0])
	absent.workspaces = []string{workspace}
	if workspace != ownWorkspace {
		return absent
	}
	return outcome{http.StatusOK, absent.workspaces, []string{"files/" + ownWorkspace + "/" + file}}
}
