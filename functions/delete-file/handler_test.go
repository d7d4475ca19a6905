package main

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
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

func TestResponses(t *testing.T) {
	env := newBuckets(t).unversioned
	home := env.NewTenant(t)
	other := home.NewWorkspace(t)
	f := newFixture(t, env, home)
	names := map[string]string{"FILE": string(f.file), "OTHER_WORKSPACE": string(other)}
	g := functest.Golden{Instance: env.Instance(), Names: names}
	// Each request has its own key, so its limiter is idle.
	play := func(response string, e functest.Event) {
		g.Play(t, response, e.As(home.StandardKey(t, "")).Limited("60", "20"))
	}
	f.put(other, f.file, "content")
	play("not-found", deleteRequest(env.NewTenant(t).Workspace, f.file))
	play("not-found", f.unnamed().At("file_id", "file_a%2Fb"))
	play("not-found", f.unnamed())
	names["API_KEY"] = f.key
	g.PlayCaptured(t, "named")
	play("not-found", deleteRequest(other, f.file))
	f.oneFile()
	play("not-found", f.unnamed().Asking("workspace_id", string(f.workspace), string(f.workspace)))
	play("named", f.unnamed())

	g.Play(t, "limited", newFixture(t, env, home).overLimit()) // the next one passes a minute later
}

// The audit line contains the file, its workspace, how many versions this request
// removed, and whether an answer was lost.
func TestAuditLine(t *testing.T) {
	b := newBuckets(t)
	tenant := b.versioned.NewTenant(t)
	denied := faults.Answer(http.StatusForbidden, "AccessDenied", "no")
	for _, c := range []struct {
		name           string
		env            *functest.Env
		store          func(*fixture)
		rules          []faults.Rule
		status         int
		versions, lost any
	}{
		{"a file", b.unversioned, (*fixture).oneFile, nil, done, 1.0, nil},
		{"two versions", b.versioned, (*fixture).twoVersions, nil, done, 2.0, nil},
		{"no such file", b.unversioned, (*fixture).noFile, nil, absent, nil, nil},
		{"denied", b.unversioned, (*fixture).oneFile, []faults.Rule{{Operation: erase, Fault: denied}}, failed, nil, nil},
		{"failed half way", b.versioned, (*fixture).twoVersions, []faults.Rule{{Operation: purge, Call: 2, Fault: denied}}, failed, 2.0, nil},
		{"answer lost", b.unversioned, (*fixture).oneFile, []faults.Rule{{Operation: erase, Attempt: 1, Fault: faults.LoseAnswer()}}, absent, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, c.env, tenant)
			c.store(f)
			got := c.env.Instance().Invoke(t, f.unnamed(), c.rules...)
			got.Is(t, c.status)
			for field, want := range map[string]any{
				"operation": "deleteFile", "file": string(f.file), "workspace": string(f.workspace),
				"versions_removed": c.versions, "answer_lost": c.lost,
			} {
				if got.Audit[field] != want {
					t.Errorf("%s is %v, want %v", field, got.Audit[field], want)
				}
			}
		})
	}
}

func TestAnUnreadableRateDeletesNothing(t *testing.T) {
	env := newBuckets(t).unversioned
	tenant := env.NewTenant(t)
	for _, rate := range [][2]string{{"", "20"}, {"60", ""}, {"many", "20"}, {"60", "20.5"}, {"0", "20"}, {"60", "-1"}, {"9223372036854775808", "20"}} {
		f := newFixture(t, env, tenant)
		f.oneFile()
		got := env.Instance().Invoke(t, f.unnamed().Limited(rate[0], rate[1]))
		if left := f.look(t, f.workspace).Left; got.Status != failed || left != 1 || got.Line["stack"] != nil {
			t.Errorf("rate %q: status %d, %d versions are left, %v", rate, got.Status, left, got.Line)
		}
	}
}
