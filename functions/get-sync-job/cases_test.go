package main

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"signalbox.dev/infra/test/cases"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// The calls of the function.
const getKey, getJob = "GetItem key#", "GetItem job#"

func readRequest(job string) functest.Event {
	return functest.NewEvent(http.MethodGet, "/api/v1/scim/sync-jobs/{id}").At("id", job)
}

// jobIn makes a job of the tenant in this state.
func jobIn(w *cases.World, state syncjobs.Status) ids.Job {
	t, account := w.TB(), w.Tenant.ID
	job, err := w.Jobs.Create(t.Context(), account)
	kit.Must(t, err)
	if state != syncjobs.Queued {
		kit.Must(t, w.Jobs.Start(t.Context(), account, job))
	}
	if state == syncjobs.Succeeded {
		kit.Must(t, w.Jobs.Succeed(t.Context(), account, job, 12, 0))
	}
	return job
}

// read makes an act of a request for a job.
func read(w *cases.World, token, job string) cases.Act {
	a := w.Request("read", cases.Request{Assemble: assemble, Event: readRequest(job).As(token)})
	a.Calls, a.Rounds = []string{getJob, getKey}, 1
	return a
}

func TestCases(t *testing.T) {
	alone := func(name, want string, set func(*cases.World) cases.Act) cases.Case {
		return cases.Case{Name: name, Set: func(w *cases.World) cases.Play {
			a := set(w)
			a.Want = want
			return cases.Play{Act: a}
		}}
	}
	running := func(w *cases.World) string { return string(jobIn(w, syncjobs.Running)) }
	cases.Suite{
		Cases: []cases.Case{
			alone("own job", "200", func(w *cases.World) cases.Act { return read(w, w.Tenant.Management, running(w)) }),
			alone("another account's job", "404", func(w *cases.World) cases.Act { return read(w, w.Tenant.Management, string(strangersJob(w))) }),
			alone("unknown job", "404", func(w *cases.World) cases.Act { return read(w, w.Tenant.Management, string(ids.New[ids.Job]())) }),
			alone("no UUID", "404", func(w *cases.World) cases.Act {
				a := read(w, w.Tenant.Management, kit.Marker)
				a.Calls = []string{getKey}
				return a
			}),
			alone("standard key", "401 management_key_required", func(w *cases.World) cases.Act {
				a := read(w, w.Tenant.StandardKey(w.TB(), ""), running(w))
				a.Spare = []string{getJob}
				return a
			}),
			alone("unknown key", "401 unknown_key", func(w *cases.World) cases.Act {
				a := read(w, kit.Marker+"unknown", running(w))
				a.Spare = []string{getJob}
				return a
			}),
			{Name: "revoke key", Set: func(w *cases.World) cases.Play {
				a := read(w, w.Tenant.Management, running(w))
				a.NoMenu = true
				return cases.Play{Act: a, Beside: []cases.Beside{{Then: "401 disabled", Act: w.Command("revoke", func(ctx context.Context, c cases.Clients) error {
					return c.Registry.DisableKey(ctx, w.Tenant.ID, auth.HashKey(w.Tenant.Management))
				})}}}
			}},
			alone("create a job", "done", func(w *cases.World) cases.Act {
				return w.Command("create", func(ctx context.Context, c cases.Clients) error {
					job, err := c.Jobs.Create(ctx, w.Tenant.ID)
					if row := w.Rows(w.Outputs.Jobs).Get(w.TB(), kit.Key("job#"+string(job))); err == nil && row == nil {
						w.Broken("stored", "the job was created and is not there")
					}
					return err
				})
			}),
			{Name: "a job moves", Set: func(w *cases.World) cases.Play {
				job := jobIn(w, syncjobs.Running)
				start, succeed, fail := worker(w, job)
				return cases.Play{Act: succeed, Judge: func(done []cases.Done) { finished(w, job, done) }, Beside: []cases.Beside{
					{Act: fail, Then: syncjobs.ErrState.Error(), Ends: []string{syncjobs.ErrState.Error()}},
					{Act: start, Ends: []string{syncjobs.ErrState.Error()}},
				}}
			}},
		},
		Overlaps: []cases.Overlap{{Name: "two workers and a client", Reaches: []string{"fail: done", "succeed: done", "read: 200"}, Set: func(w *cases.World) ([]cases.Act, func([]cases.Done)) {
			job := jobIn(w, syncjobs.Queued)
			start, succeed, fail := worker(w, job)
			second := start
			second.Name = "start too"
			return []cases.Act{start, second, succeed, fail, read(w, w.Tenant.Management, string(job))}, func(done []cases.Done) { finished(w, job, done) }
		}}},
	}.Play(t)
}

// worker makes the acts of a worker on a job.
func worker(w *cases.World, job ids.Job) (start, succeed, fail cases.Act) {
	account := w.Tenant.ID
	start = w.Command("start", func(ctx context.Context, c cases.Clients) error { return c.Jobs.Start(ctx, account, job) }, syncjobs.ErrState)
	succeed = w.Command("succeed", func(ctx context.Context, c cases.Clients) error { return c.Jobs.Succeed(ctx, account, job, 3, 4) }, syncjobs.ErrState)
	fail = w.Command("fail", func(ctx context.Context, c cases.Clients) error {
		return c.Jobs.Fail(ctx, account, job, "a fixed text")
	}, syncjobs.ErrState)
	return start, succeed, fail
}

// finished requires that a job ends once, in the state that its worker was told.
func finished(w *cases.World, job ids.Job, done []cases.Done) {
	row := w.Rows(w.Outputs.Jobs).Get(w.TB(), kit.Key("job#"+string(job)))
	ends := map[string]string{"succeed": "succeeded", "fail": "failed"}
	told := map[string]bool{}
	for _, d := range done {
		if state := ends[d.Act]; state != "" && d.Result.Text == "done" {
			told[state] = true
		}
	}
	state := kit.TextOf(row, "status")
	if len(told) > 1 || len(told) == 1 && !told[state] {
		w.Broken("stored", "the job is %s, though its workers were told %v", state, told)
	}
}

// strangersJob makes a job of another account.
func strangersJob(w *cases.World) ids.Job {
	job, err := w.Jobs.Create(w.TB().Context(), w.Stranger().ID)
	kit.Must(w.TB(), err)
	return job
}

// TestResponses checks the response to each state of a job. Another account's job gets the same
// response as a missing job.
func TestResponses(t *testing.T) {
	cases.OnModel(t, "", 0, func(w *cases.World) {
		ask := w.Asker(assemble)
		const at = `"2000-01-01T00:00:00Z"`
		failed := jobIn(w, syncjobs.Queued)
		kit.Must(w.TB(), w.Jobs.Fail(w.TB().Context(), w.Tenant.ID, failed, "The directory refused the connection."))
		for job, fields := range map[ids.Job]string{
			jobIn(w, syncjobs.Queued):    `"queued","synced_groups":null,"deleted_groups":null,"error_message":null,"created_at":` + at + `,"started_at":null,"finished_at":null`,
			jobIn(w, syncjobs.Running):   `"running","synced_groups":null,"deleted_groups":null,"error_message":null,"created_at":` + at + `,"started_at":` + at + `,"finished_at":null`,
			jobIn(w, syncjobs.Succeeded): `"succeeded","synced_groups":12,"deleted_groups":0,"error_message":null,"created_at":` + at + `,"started_at":` + at + `,"finished_at":` + at,
			failed:                       `"failed","synced_groups":null,"deleted_groups":null,"error_message":"The directory refused the connection.","created_at":` + at + `,"started_at":null,"finished_at":` + at,
		} {
			a := ask("200", readRequest(string(job)))
			if want := `{"data":{"id":"` + string(job) + `","status":` + fields + `}}`; a.Body != want || (a.Header["Retry-After"] == "5") != strings.HasSuffix(fields, "null") {
				w.TB().Errorf("%v %s, want %s", a.Header, a.Body, want)
			}
		}
		missing := ask("404", readRequest(string(ids.New[ids.Job]()))).Text()
		for _, id := range []string{"%7Babc%7D", string(strangersJob(w)), string(w.Tenant.Workspace)} {
			if got := ask("404", readRequest(id)).Text(); got != missing {
				w.TB().Errorf("it differs from a missing job's %s: %s", missing, got)
			}
		}
	})
}

// TestJobs asks for jobs of every kind, with entity tags and as several callers.
func TestJobs(t *testing.T) {
	cases.OnModel(t, "", 0, func(w *cases.World) {
		ask := w.Asker(assemble)
		job, queued, finished := string(jobIn(w, syncjobs.Running)), string(jobIn(w, syncjobs.Queued)), string(jobIn(w, syncjobs.Succeeded))
		own := readRequest(job)
		etag := ask("200", own, `"status":"running"`).Header["ETag"]
		for _, have := range []string{
			etag, "*", " *\t", "W/" + etag, `"a", ` + etag, etag + ` ,"b"`, "," + etag, ` , ,W/"é",` + etag + ",\t", `"!",` + etag, `"a,b"` + "\t," + etag,
		} {
			if a := ask("304", own.With("If-None-Match", have)); a.Body != "" || a.Header["ETag"] != etag || a.Header["Retry-After"] != "5" {
				w.TB().Errorf("%q: %v", have, a)
			}
		}
		ask("304", own.With("If-None-Match", `"a"`, etag))
		for _, have := range []string{
			"", "a", `"a"`, etag[1:], etag[:len(etag)-1], strings.Trim(etag, `"`), "w/" + etag, etag + "x", etag + ` "b"`, etag + ",*", "**", "*," + etag, etag + `,"`, etag + `,"a b"`, etag + ",\"\x7f\"", etag + `,b`, `ab",` + etag, `W/` + etag[1:],
		} {
			if a := ask("200", own.With("If-None-Match", have)); a.Header["ETag"] != etag || a.Header["Cache-Control"] != "private, no-cache" {
				w.TB().Errorf("%q: %v", have, a)
			}
		}
		ask("200", readRequest(strings.ToUpper(job)), `"id":"`+job+`"`)
		ask("200", readRequest(queued), `"started_at":null,"finished_at":null`)
		if a := ask("200", readRequest(finished), `"synced_groups":12,"deleted_groups":0,"error_message":null`); a.Header["Retry-After"] != "" {
			w.TB().Errorf("a finished job: %v", a.Header)
		}
		stranger := w.Stranger()
		ask("404", own.As(stranger.Management))
		ask("401 management_key_required", own.As(w.Tenant.StandardKey(w.TB(), "")))
		ask("401 management_key_required", readRequest("x").As(w.Tenant.StandardKey(w.TB(), "")))
		w.Damaged(w.Outputs.Jobs, kit.Key("job#"+finished), func() {
			ask("500", readRequest(finished), "stored sync job "+finished)
			ask("404", readRequest(finished).As(stranger.Management), "stored sync job "+finished)
		})
	})
}
