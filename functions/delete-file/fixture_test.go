package main

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
)

// The answers of the operation.
const (
	done    = http.StatusOK
	absent  = http.StatusNotFound
	limited = http.StatusTooManyRequests
	unknown = http.StatusUnauthorized
	failed  = http.StatusInternalServerError
)

// buckets are environments of the function, by the versioning of their bucket. A
// suspended one keeps one version of a new object.
type buckets struct{ unversioned, versioned, suspended *functest.Env }

func newBuckets(t *testing.T) buckets {
	t.Helper()
	env := functest.New(t, assemble)
	bucket := func(versioning types.BucketVersioningStatus) *functest.Env {
		return env.WithBucket(env.Engines.Bucket(t, versioning))
	}
	return buckets{bucket(""), bucket(types.BucketVersioningStatusEnabled), bucket(types.BucketVersioningStatusSuspended)}
}

// fixture is one file id in one workspace, and one key that asks for its deletion.
type fixture struct {
	t         testing.TB
	env       *functest.Env
	tenant    functest.Tenant
	workspace ids.Workspace
	file      ids.File
	key       string
}

func newFixture(t testing.TB, env *functest.Env, tenant functest.Tenant) *fixture {
	t.Helper()
	return &fixture{t, env, tenant, tenant.Workspace, ids.NewFile(), tenant.StandardKey(t, "")}
}

func (f *fixture) bucket() testkit.Bucket {
	return testkit.Bucket{Client: f.env.S3, Name: f.env.Bucket}
}

func (f *fixture) put(w ids.Workspace, file ids.File, content string) {
	f.t.Helper()
	f.bucket().Put(f.t, files.Key(w, file), content)
}

// What is stored of the file.

func (f *fixture) noFile()  {}
func (f *fixture) oneFile() { f.put(f.workspace, f.file, "the newest content") }

func (f *fixture) twoVersions() {
	f.put(f.workspace, f.file, "older content")
	f.oneFile()
}

// The kinds of request.

// deleteRequest asks for the deletion of a file; workspace "" names none.
func deleteRequest(w ids.Workspace, file ids.File) functest.Event {
	e := functest.NewEvent(http.MethodDelete, "/api/v1/files/{file_id}").At("file_id", string(file))
	if w == "" {
		return e
	}
	return e.Asking("workspace_id", string(w))
}

func (f *fixture) named() functest.Event   { return deleteRequest(f.workspace, f.file).As(f.key) }
func (f *fixture) unnamed() functest.Event { return deleteRequest("", f.file).As(f.key) }

// overLimit is the second request of a key with a limit of one.
func (f *fixture) overLimit() functest.Event {
	e := f.named().Limited("1", "1")
	f.env.Instance().Invoke(f.t, e.At("file_id", "file_none")).Is(f.t, absent)
	return e
}

func (f *fixture) look(t testing.TB, w ids.Workspace) testkit.Objects {
	t.Helper()
	return f.bucket().Look(t, files.Key(w, f.file))
}
