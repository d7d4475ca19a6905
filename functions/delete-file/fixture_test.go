package main

import (
	"net/http"
	"strings"
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
// suspended one keeps one version of what is put.
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

func (f *fixture) hiddenVersions() {
	f.twoVersions()
	f.bucket().Hide(f.t, files.Key(f.workspace, f.file))
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

func (f *fixture) boundKey() functest.Event {
	return f.unnamed().As(f.tenant.StandardKey(f.t, f.workspace))
}

func (f *fixture) boundElsewhere() functest.Event {
	return f.unnamed().As(f.tenant.StandardKey(f.t, f.tenant.NewWorkspace(f.t)))
}

func (f *fixture) foreignKey() functest.Event {
	return f.named().As(f.env.NewTenant(f.t).StandardKey(f.t, ""))
}
func (f *fixture) unknownKey() functest.Event { return f.named().As(testkit.Marker + string(f.file)) }
func (f *fixture) noFileID() functest.Event   { return f.named().At("file_id", testkit.Marker) }
func (f *fixture) noWorkspace() functest.Event {
	return f.named().Asking("workspace_id", testkit.Marker)
}

func (f *fixture) withinBurst() functest.Event { return f.second("1", "100000") }
func (f *fixture) overLimit() functest.Event   { return f.second("1", "1") }

// second returns the second request of a key under this limit.
func (f *fixture) second(perMinute, burst string) functest.Event {
	e := f.named().Limited(perMinute, burst)
	f.env.Instance().Invoke(f.t, e.At("file_id", "file_none")).Is(f.t, absent)
	return e
}

func (f *fixture) look(t testing.TB, w ids.Workspace) testkit.Objects {
	t.Helper()
	return f.bucket().Look(t, files.Key(w, f.file))
}

// newCase returns the request and its checks: status is that of its answer without
// a fault.
func (f *fixture) newCase(status int, e functest.Event) functest.Case {
	f.put(f.workspace, f.file+"0", "sibling")
	f.put(f.workspace, f.file+"1", "hidden sibling")
	f.bucket().Hide(f.t, files.Key(f.workspace, f.file+"1"))
	before := f.look(f.t, f.workspace)
	var between testkit.Objects // after the first request
	return functest.Case{
		Env: f.env, Event: e,
		Check: func(t testing.TB, first functest.Answer) {
			f.check(t, first)
			between = f.look(t, f.workspace)
			lost := first.Line["answer_lost"] == true
			switch {
			case first.Status == done && between.Left > 0:
				t.Errorf("200, and %+v is left", between)
			case first.Status == absent && status == done && (between.Left > 0 || !lost):
				t.Errorf("404 of a file that existed, %+v left, answer lost: %v", between, lost)
			case (status != done || first.Status == limited) && between != before:
				t.Errorf("nothing was to be deleted, and %+v of %+v is left", between, before)
			case between.Visible != 0 && between != before:
				t.Errorf("half deleted it is visible: %+v of %+v", between, before)
			}
		},
		Settled: func(t testing.TB, first, again functest.Answer) {
			f.check(t, again)
			want, end := status, before
			if status == done {
				end = testkit.Objects{Siblings: before.Siblings}
				if between.Left == 0 {
					want = absent
				}
			}
			if again.Status != want {
				t.Errorf("again after %d with %+v left: status %d, want %d", first.Status, between, again.Status, want)
			}
			if left := f.look(t, f.workspace); left != end {
				t.Errorf("in the end %+v is left, want %+v", left, end)
			}
		},
	}
}

// check checks what every answer of the operation must have.
func (f *fixture) check(t testing.TB, a functest.Answer) {
	t.Helper()
	if a.Status == done {
		var body map[string]any
		a.Decode(t, &body)
		functest.HasMembers(t, body, "id", "type")
		if body["id"] != string(f.file) || body["type"] != "file_deleted" {
			t.Errorf("body %s", a.Body)
		}
	}
	counted := a.Status == done || a.Status == absent || a.Status == limited
	for _, name := range []string{"RateLimit", "RateLimit-Policy", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		if (a.Header[name] != "") != counted {
			t.Errorf("status %d, %s %q", a.Status, name, a.Header[name])
		}
	}
	if after := a.Header["Retry-After"]; (after != "") != (a.Status == limited) || strings.HasPrefix(after, "0") {
		t.Errorf("status %d, Retry-After %q", a.Status, after)
	}
	if known := a.Line["account"] != nil; known != (a.Audit != nil) {
		t.Errorf("caller known: %v, audit line: %v", known, a.Audit)
	}
	want := map[int]any{done: "done", absent: "refused", limited: "refused", failed: "uncertain"}[a.Status]
	if a.Audit != nil && a.Audit["outcome"] != want {
		t.Errorf("audit: outcome %v, want %v", a.Audit["outcome"], want)
	}
}
