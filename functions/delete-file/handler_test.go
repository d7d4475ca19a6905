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

// newEnv is the function with a bucket of its own; "" is without versioning.
func newEnv(t *testing.T, versioning types.BucketVersioningStatus) *functest.Env {
	t.Helper()
	env := functest.New(t, assemble)
	return env.WithBucket(env.Engines.Bucket(t, versioning))
}

func put(t *testing.T, env *functest.Env, w ids.Workspace, file ids.File) {
	t.Helper()
	testkit.Bucket{Client: env.S3, Name: env.Bucket}.Put(t, files.Key(w, file), "content")
}

// left counts the versions of a file.
func left(t *testing.T, env *functest.Env, w ids.Workspace, file ids.File) int {
	t.Helper()
	return testkit.Bucket{Client: env.S3, Name: env.Bucket}.Look(t, files.Key(w, file)).Left
}

// deleteRequest asks for the deletion of a file; workspace "" names none.
func deleteRequest(w ids.Workspace, file ids.File) functest.Event {
	e := functest.NewEvent(http.MethodDelete, "/api/v1/files/{file_id}").At("file_id", string(file))
	if w == "" {
		return e
	}
	return e.Asking("workspace_id", string(w))
}

func TestResponses(t *testing.T) {
	env := newEnv(t, "")
	home, file := env.NewTenant(t), ids.NewFile()
	other := home.NewWorkspace(t)
	unnamed := deleteRequest("", file)
	names := map[string]string{"FILE": string(file), "OTHER_WORKSPACE": string(other)}
	g := functest.Golden{Instance: env.Instance(), Names: names}
	// Each request has its own key, so its limiter is idle.
	play := func(response string, e functest.Event) {
		g.Play(t, response, e.As(home.StandardKey(t, "")).Limited("60", "20"))
	}
	put(t, env, other, file)
	play("not-found", deleteRequest(env.NewTenant(t).Workspace, file))
	play("not-found", unnamed.At("file_id", "file_a%2Fb"))
	play("not-found", unnamed)
	play("named", deleteRequest(other, file))
	play("not-found", deleteRequest(other, file))
	put(t, env, home.Workspace, file)
	play("not-found", unnamed.Asking("workspace_id", string(home.Workspace), string(home.Workspace)))
	play("named", unnamed)

	second := unnamed.As(home.StandardKey(t, "")).Limited("1", "1")
	g.Instance.Invoke(t, second).Is(t, http.StatusNotFound)
	g.Play(t, "limited", second) // the next one passes a minute later
}

// After a fault the audit line contains the file, its workspace, how many versions this request
// removed, and whether an answer was lost.
func TestAuditLine(t *testing.T) {
	plain, versioned := newEnv(t, ""), newEnv(t, types.BucketVersioningStatusEnabled)
	denied := faults.Answer(http.StatusForbidden, "AccessDenied", "no")
	for name, c := range map[string]struct {
		env            *functest.Env
		stored         int // versions
		fault          faults.Rule
		status         int
		versions, lost any
	}{
		"denied":          {plain, 1, faults.Rule{Operation: erase, Fault: denied}, http.StatusInternalServerError, nil, nil},
		"failed half way": {versioned, 2, faults.Rule{Operation: purge, Call: 2, Fault: denied}, http.StatusInternalServerError, 2.0, nil},
		"answer lost":     {plain, 1, faults.Rule{Operation: erase, Attempt: 1, Fault: faults.LoseAnswer()}, http.StatusNotFound, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			tenant, file := c.env.NewTenant(t), ids.NewFile()
			for range c.stored {
				put(t, c.env, tenant.Workspace, file)
			}
			got := c.env.Instance().Invoke(t, deleteRequest("", file).As(tenant.StandardKey(t, "")), c.fault)
			got.Is(t, c.status)
			for field, want := range map[string]any{
				"operation": "deleteFile", "file": string(file), "workspace": string(tenant.Workspace),
				"versions_removed": c.versions, "answer_lost": c.lost,
			} {
				if got.Audit[field] != want {
					t.Errorf("%s is %v, want %v", field, got.Audit[field], want)
				}
			}
		})
	}
}
