package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/infra/test/sim"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// The calls of the function.
const getKey, getJob = "GetItem key#", "GetItem job#"

func readRequest(job string) functest.Event {
	return functest.NewEvent(http.MethodGet, "/api/v1/scim/sync-jobs/{id}").At("id", job)
}

// TestSimulation runs requests with every fault of every call. It also runs them beside
// the steps of a job, in every order of their calls.
func TestSimulation(t *testing.T) {
	both := []string{getJob, getKey}
	one := func(name string, calls []string, request func(*sim.World) sim.Read) sim.Scenario {
		return sim.Scenario{Name: name, Assemble: assemble, Calls: calls, RoundTrips: min(len(calls), 1), Set: func(w *sim.World) {
			w.Read("A", request(w))
		}}
	}
	several := func(name string, set func(*sim.World)) sim.Scenario {
		return sim.Scenario{Name: name, Assemble: assemble, Set: set}
	}
	own := func(w *sim.World) sim.Read { return sim.Read{Job: string(w.Job(syncjobs.Running))} }
	sim.Suite{
		Alone: []sim.Scenario{
			{Name: "responses", Assemble: assemble, Set: askResponses},
			{Name: "jobs", Assemble: assemble, Set: askJobs},
			{Name: "create a job", Assemble: assemble, Set: createJob},
			one("own job", both, own),
			one("another account's job", both, func(w *sim.World) sim.Read { return sim.Read{Job: string(foreignJob(w)), Never: true} }),
			one("unknown job", both, func(*sim.World) sim.Read { return sim.Read{Job: string(ids.New[ids.Job]()), Never: true} }),
			one("no UUID", []string{getKey}, func(*sim.World) sim.Read { return sim.Read{Job: kit.Marker, Never: true} }),
			one("standard key", both, func(w *sim.World) sim.Read {
				r := own(w)
				r.Token = w.StandardKey("")
				return r
			}),
			one("unknown key", both, func(w *sim.World) sim.Read {
				r := own(w)
				r.Token = w.UnknownKey()
				return r
			}),
		},
		Pairs: []sim.Scenario{
			several("the job finishes", func(w *sim.World) {
				job := w.Job(syncjobs.Running)
				w.Read("A", sim.Read{Job: string(job)})
				w.Step("succeed", job, syncjobs.Succeeded, syncjobs.Running)
				w.Step("fail", job, syncjobs.Failed, syncjobs.Running, syncjobs.Queued)
			}).Reaches("A: 200", "succeed: done", "fail: done"),
			several("revoke key", func(w *sim.World) {
				w.Read("A", own(w))
				w.RevokeKey("revoke key", w.Tenant.Management)
			}).Reaches("A: 200", "A: 401 disabled"),
		},
		Crowds: []sim.Scenario{
			several("two workers", func(w *sim.World) {
				job := w.Job(syncjobs.Queued)
				w.Read("A", sim.Read{Job: string(job)})
				w.Step("start", job, syncjobs.Running, syncjobs.Queued)
				w.Step("start too", job, syncjobs.Running, syncjobs.Queued)
				w.Step("succeed", job, syncjobs.Succeeded, syncjobs.Running)
			}).Reaches("start: done", "start too: done", "succeed: done"),
		},
	}.Play(t)
}

// createJob is done if the job is stored.
func createJob(w *sim.World) {
	w.Command("create", func(ctx context.Context, c sim.Clients) error {
		job, err := c.Jobs.Create(ctx, w.Tenant.ID)
		isIt := func(row kit.Row) bool { return kit.TextOf(row, "pk") == "job#"+string(job) }
		if err == nil && !slices.ContainsFunc(w.Rows("sync-jobs").All(w.TB()), isIt) {
			w.TB().Errorf("the job %s was created and is not stored", job)
		}
		return err
	})
}

// foreignJob makes a job of another account.
func foreignJob(w *sim.World) ids.Job {
	job, err := w.Direct.Jobs.Create(w.TB().Context(), kit.NewTenant(w.TB(), w.Tenant.Registry).ID)
	kit.Must(w.TB(), err)
	return job
}

// askResponses compares the response to each state of a job with testdata. Another
// account's job gets the same response as a missing job.
func askResponses(w *sim.World) {
	failed := w.Job(syncjobs.Queued)
	kit.Must(w.TB(), w.Direct.Jobs.Fail(w.TB().Context(), w.Tenant.ID, failed, "The directory refused the connection."))
	names := map[string]string{"JOB_FAILED": string(failed)}
	for _, state := range []syncjobs.Status{syncjobs.Queued, syncjobs.Running, syncjobs.Succeeded} {
		names["JOB_"+strings.ToUpper(string(state))] = string(w.Job(state))
	}
	same := func(response string, a functest.Answer) functest.Answer {
		return functest.Golden(w.TB(), response, names, a)
	}
	for _, state := range []string{"queued", "running", "succeeded", "failed"} {
		own := readRequest(names["JOB_"+strings.ToUpper(state)])
		if a := same(state, w.Ask("200", own)); state == "running" {
			same("unchanged", w.Ask("304", own.With("If-None-Match", a.Header["ETag"])))
		}
	}
	for _, id := range []string{string(ids.New[ids.Job]()), "%7Babc%7D", string(foreignJob(w)), string(w.Tenant.Workspace)} {
		same("not-found", w.Ask("404", readRequest(id)))
	}
}

// askJobs asks for jobs of every kind, with entity tags and as several callers.
func askJobs(w *sim.World) {
	job, queued, finished := string(w.Job(syncjobs.Running)), string(w.Job(syncjobs.Queued)), string(w.Job(syncjobs.Succeeded))
	own := readRequest(job)
	etag := w.Ask("200", own, `"status":"running"`).Header["ETag"]
	for _, have := range []string{
		etag, "*", " *\t", "W/" + etag, `"a", ` + etag, etag + ` ,"b"`, "," + etag, ` , ,W/"é",` + etag + ",\t", `"!",` + etag, `"a,b"` + "\t," + etag,
	} {
		if a := w.Ask("304", own.With("If-None-Match", have)); a.Body != "" || a.Header["ETag"] != etag || a.Header["Retry-After"] != "5" {
			w.TB().Errorf("%q: %v", have, a)
		}
	}
	w.Ask("304", own.With("If-None-Match", `"a"`, etag))
	for _, have := range []string{
		"", "a", `"a"`, etag[1:], etag[:len(etag)-1], strings.Trim(etag, `"`), "w/" + etag, etag + "x", etag + ` "b"`, etag + ",*", "**", "*," + etag, etag + `,"`, etag + `,"a b"`, etag + ",\"\x7f\"", etag + `,b`, `ab",` + etag, `W/` + etag[1:],
	} {
		if a := w.Ask("200", own.With("If-None-Match", have)); a.Header["ETag"] != etag || a.Header["Cache-Control"] != "private, no-cache" {
			w.TB().Errorf("%q: %v", have, a)
		}
	}
	w.Ask("200", readRequest(strings.ToUpper(job)), `"id":"`+job+`"`)
	w.Ask("200", readRequest(queued), `"started_at":null,"finished_at":null`)
	if a := w.Ask("200", readRequest(finished), `"synced_groups":12,"deleted_groups":0,"error_message":null`); a.Header["Retry-After"] != "" {
		w.TB().Errorf("a finished job: %v", a.Header)
	}
	stranger := kit.NewTenant(w.TB(), w.Tenant.Registry)
	w.Ask("404", own.As(stranger.Management))
	w.Ask("401 management_key_required", own.As(w.StandardKey("")))
	w.Ask("401 management_key_required", readRequest("x").As(w.StandardKey("")))
	w.Unreadable("sync-jobs", kit.Key("job#"+finished), func() {
		w.Ask("500", readRequest(finished), "stored sync job "+finished)
		w.Ask("404", readRequest(finished).As(stranger.Management), "stored sync job "+finished)
	})
}
