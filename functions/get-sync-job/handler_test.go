package main

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// The calls of the function.
const getKey, getJob = "GetItem key#", "GetItem job#"

// fixture is the function and the tenant that owns the sync jobs.
type fixture struct {
	env    *functest.Env
	tenant functest.Tenant
	jobs   *syncjobs.Writer
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	env := functest.New(t, assemble)
	return fixture{env, env.NewTenant(t), syncjobs.NewWriter(env.DB, env.Engines.Tables.SyncJobs)}
}

// newJob makes a job of the account in this state.
func (f fixture) newJob(t *testing.T, account ids.Account, state string) string {
	t.Helper()
	id, err := f.jobs.Create(t.Context(), account)
	if state == "running" || state == "succeeded" {
		err = errors.Join(err, f.jobs.Start(t.Context(), account, id))
	}
	switch state {
	case "succeeded":
		err = errors.Join(err, f.jobs.Succeed(t.Context(), account, id, 12, 0))
	case "failed":
		err = errors.Join(err, f.jobs.Fail(t.Context(), account, id, "The directory refused the connection."))
	}
	testkit.Must(t, err)
	return string(id)
}

func readRequest(job string) functest.Event {
	return functest.NewEvent(http.MethodGet, "/api/v1/scim/sync-jobs/{id}").At("id", job)
}

// checkJob checks that the body has all members of a job, and no other.
func checkJob(t *testing.T, a functest.Answer) {
	t.Helper()
	var body map[string]map[string]any
	a.Decode(t, &body)
	if len(body) != 1 {
		t.Errorf("body %s", a.Body)
	}
	functest.HasMembers(t, body["data"], "id", "status", "synced_groups", "deleted_groups",
		"error_message", "created_at", "started_at", "finished_at")
}

func TestResponses(t *testing.T) {
	f := newFixture(t)
	token := f.tenant.Management
	names := map[string]string{}
	g := functest.Golden{Instance: f.env.Instance(), Names: names}
	for _, state := range []string{"queued", "running", "succeeded", "failed"} {
		job := f.newJob(t, f.tenant.ID, state)
		names["JOB_"+strings.ToUpper(state)] = job
		running := g.Play(t, state, readRequest(job).As(token))
		if state == "running" {
			g.Play(t, "unchanged", readRequest(job).As(token).With("If-None-Match", running.Header["ETag"]))
			if got := running.Line["operation"]; got != "getSyncJob" {
				t.Errorf("the log line is of the operation %v", got)
			}
		}
	}
	job := names["JOB_RUNNING"]
	g.Play(t, "not-found", readRequest("00000000-0000-4000-8000-000000000000").As(token))
	g.Play(t, "not-found", readRequest("%7Babc%7D").Asking("a", "1", "2").As(token))
	g.Play(t, "not-found", readRequest(strings.ToUpper(job)).As(f.env.NewTenant(t).Management))
}
