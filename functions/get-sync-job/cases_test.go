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
func jobIn(env *cases.Environment, state syncjobs.Status) ids.Job {
	t, account := env.TB(), env.Tenant.ID
	job, err := env.Jobs.Create(t.Context(), account)
	kit.Must(t, err)
	if state != syncjobs.Queued {
		kit.Must(t, env.Jobs.Start(t.Context(), account, job))
	}
	if state == syncjobs.Succeeded {
		kit.Must(t, env.Jobs.Succeed(t.Context(), account, job, 12, 0))
	}
	return job
}

// read makes the operation of a request for a job.
func read(env *cases.Environment, token, job string) cases.Operation {
	op := env.Request("read", cases.Request{Assemble: assemble, Event: readRequest(job).As(token)})
	op.Calls, op.Rounds = []string{getJob, getKey}, 1
	return op
}

func TestCases(t *testing.T) {
	alone := func(name, want string, set func(*cases.Environment) cases.Operation) cases.Case {
		return cases.Case{Name: name, SetUp: func(env *cases.Environment) cases.Scenario {
			op := set(env)
			op.Want = want
			return cases.Scenario{Operation: op}
		}}
	}
	running := func(env *cases.Environment) string { return string(jobIn(env, syncjobs.Running)) }
	cases.Suite{
		Cases: []cases.Case{
			alone("own job", "200", func(env *cases.Environment) cases.Operation { return read(env, env.Tenant.Management, running(env)) }),
			alone("another account's job", "404", func(env *cases.Environment) cases.Operation {
				return read(env, env.Tenant.Management, string(strangersJob(env)))
			}),
			alone("unknown job", "404", func(env *cases.Environment) cases.Operation {
				return read(env, env.Tenant.Management, string(ids.New[ids.Job]()))
			}),
			alone("no UUID", "404", func(env *cases.Environment) cases.Operation {
				op := read(env, env.Tenant.Management, kit.Marker)
				op.Calls = []string{getKey}
				return op
			}),
			alone("standard key", "401 management_key_required", func(env *cases.Environment) cases.Operation {
				op := read(env, env.Tenant.StandardKey(env.TB(), ""), running(env))
				op.OptionalCalls = []string{getJob}
				return op
			}),
			alone("unknown key", "401 unknown_key", func(env *cases.Environment) cases.Operation {
				op := read(env, kit.Marker+"unknown", running(env))
				op.OptionalCalls = []string{getJob}
				return op
			}),
			{Name: "revoke key", SetUp: func(env *cases.Environment) cases.Scenario {
				op := read(env, env.Tenant.Management, running(env))
				op.ConcurrentOnly = true
				revoke := env.Command("revoke", func(ctx context.Context, c cases.Clients) error {
					return c.Registry.DisableKey(ctx, env.Tenant.ID, auth.HashKey(env.Tenant.Management))
				})
				return cases.Scenario{Operation: op, Concurrent: []cases.Concurrent{{Operation: revoke, AfterConcurrent: "401 disabled"}}}
			}},
			alone("create a job", "done", func(env *cases.Environment) cases.Operation {
				return env.Command("create", func(ctx context.Context, c cases.Clients) error {
					job, err := c.Jobs.Create(ctx, env.Tenant.ID)
					if row := env.Rows(env.Outputs.Jobs).Get(env.TB(), kit.Key("job#"+string(job))); err == nil && row == nil {
						env.Broken("stored", "the job was created and is not there")
					}
					return err
				})
			}),
			{Name: "a job moves", SetUp: func(env *cases.Environment) cases.Scenario {
				job := jobIn(env, syncjobs.Running)
				start, succeed, fail := worker(env, job)
				return cases.Scenario{Operation: succeed, Judge: func(outcomes []cases.Outcome) { finished(env, job, outcomes) }, Concurrent: []cases.Concurrent{
					{Operation: fail, AfterConcurrent: syncjobs.ErrState.Error(), OwnOutcomes: []string{syncjobs.ErrState.Error()}},
					{Operation: start, OwnOutcomes: []string{syncjobs.ErrState.Error()}},
				}}
			}},
		},
		Overlaps: []cases.Overlap{{Name: "two workers and a client", Reaches: []string{"fail: done", "succeed: done", "read: 200"}, SetUp: func(env *cases.Environment) ([]cases.Operation, func([]cases.Outcome)) {
			job := jobIn(env, syncjobs.Queued)
			start, succeed, fail := worker(env, job)
			second := start
			second.Name = "start too"
			return []cases.Operation{start, second, succeed, fail, read(env, env.Tenant.Management, string(job))}, func(outcomes []cases.Outcome) { finished(env, job, outcomes) }
		}}},
	}.Run(t)
}

// worker makes the operations of a worker on a job.
func worker(env *cases.Environment, job ids.Job) (start, succeed, fail cases.Operation) {
	account := env.Tenant.ID
	start = env.Command("start", func(ctx context.Context, c cases.Clients) error { return c.Jobs.Start(ctx, account, job) }, syncjobs.ErrState)
	succeed = env.Command("succeed", func(ctx context.Context, c cases.Clients) error { return c.Jobs.Succeed(ctx, account, job, 3, 4) }, syncjobs.ErrState)
	fail = env.Command("fail", func(ctx context.Context, c cases.Clients) error {
		return c.Jobs.Fail(ctx, account, job, "a fixed text")
	}, syncjobs.ErrState)
	return start, succeed, fail
}

// finished requires that a job ends once, in the state that its worker was told.
func finished(env *cases.Environment, job ids.Job, outcomes []cases.Outcome) {
	row := env.Rows(env.Outputs.Jobs).Get(env.TB(), kit.Key("job#"+string(job)))
	ends := map[string]string{"succeed": "succeeded", "fail": "failed"}
	told := map[string]bool{}
	for _, o := range outcomes {
		if state := ends[o.Operation]; state != "" && o.Result.Text == "done" {
			told[state] = true
		}
	}
	state := kit.TextOf(row, "status")
	if len(told) > 1 || len(told) == 1 && !told[state] {
		env.Broken("stored", "the job is %s, though its workers were told %v", state, told)
	}
}

// strangersJob makes a job of another account.
func strangersJob(env *cases.Environment) ids.Job {
	job, err := env.Jobs.Create(env.TB().Context(), env.Stranger().ID)
	kit.Must(env.TB(), err)
	return job
}

// TestResponses checks the response to each state of a job. Another account's job gets the same
// response as a missing job.
func TestResponses(t *testing.T) {
	cases.OnModel(t, "", 0, func(env *cases.Environment) {
		ask := env.Asker(assemble)
		const at = `"2000-01-01T00:00:00Z"`
		failed := jobIn(env, syncjobs.Queued)
		kit.Must(env.TB(), env.Jobs.Fail(env.TB().Context(), env.Tenant.ID, failed, "The directory refused the connection."))
		for job, fields := range map[ids.Job]string{
			jobIn(env, syncjobs.Queued):    `"queued","synced_groups":null,"deleted_groups":null,"error_message":null,"created_at":` + at + `,"started_at":null,"finished_at":null`,
			jobIn(env, syncjobs.Running):   `"running","synced_groups":null,"deleted_groups":null,"error_message":null,"created_at":` + at + `,"started_at":` + at + `,"finished_at":null`,
			jobIn(env, syncjobs.Succeeded): `"succeeded","synced_groups":12,"deleted_groups":0,"error_message":null,"created_at":` + at + `,"started_at":` + at + `,"finished_at":` + at,
			failed:                         `"failed","synced_groups":null,"deleted_groups":null,"error_message":"The directory refused the connection.","created_at":` + at + `,"started_at":null,"finished_at":` + at,
		} {
			a := ask("200", readRequest(string(job)))
			retry := map[bool]string{true: "5"}[strings.HasSuffix(fields, "null")]
			if want := `{"data":{"id":"` + string(job) + `","status":` + fields + `}}`; a.Body != want || a.Header["Retry-After"] != retry {
				env.TB().Errorf("%v %s, want %s", a.Header, a.Body, want)
			}
		}
		missing := ask("404", readRequest(string(ids.New[ids.Job]()))).Text()
		for _, id := range []string{"%7Babc%7D", string(strangersJob(env)), string(env.Tenant.Workspace)} {
			if got := ask("404", readRequest(id)).Text(); got != missing {
				env.TB().Errorf("it differs from a missing job's %s: %s", missing, got)
			}
		}
	})
}

// TestJobs asks with entity tags, and for a damaged job.
func TestJobs(t *testing.T) {
	cases.OnModel(t, "", 0, func(env *cases.Environment) {
		ask := env.Asker(assemble)
		job := string(jobIn(env, syncjobs.Running))
		own := readRequest(job)
		etag := ask("200", own, `"status":"running"`).Header["ETag"]
		for _, have := range []string{
			etag, "*", " *\t", "W/" + etag, `"a", ` + etag, etag + ` ,"b"`, "," + etag, ` , ,W/"é",` + etag + ",\t", `"!",` + etag, `"a,b"` + "\t," + etag,
		} {
			if a := ask("304", own.With("If-None-Match", have)); a.Body != "" || a.Header["ETag"] != etag || a.Header["Retry-After"] != "5" {
				env.TB().Errorf("%q: %v", have, a)
			}
		}
		ask("304", own.With("If-None-Match", `"a"`, etag))
		for _, have := range []string{
			"", "a", `"a"`, etag[1:], etag[:len(etag)-1], strings.Trim(etag, `"`), "w/" + etag, etag + "x", etag + ` "b"`, etag + ",*", "**", "*," + etag, etag + `,"`, etag + `,"a b"`, etag + ",\"\x7f\"", etag + `,b`, `ab",` + etag, `W/` + etag[1:],
		} {
			if a := ask("200", own.With("If-None-Match", have)); a.Header["ETag"] != etag || a.Header["Cache-Control"] != "private, no-cache" {
				env.TB().Errorf("%q: %v", have, a)
			}
		}
		ask("200", readRequest(strings.ToUpper(job)), `"id":"`+job+`"`)
		ask("401 management_key_required", readRequest("x").As(env.Tenant.StandardKey(env.TB(), "")))
		env.Damaged(env.Outputs.Jobs, kit.Key("job#"+job), func() {
			ask("500", own, "stored sync job "+job)
			ask("404", own.As(env.Stranger().Management), "stored sync job "+job)
		})
	})
}
