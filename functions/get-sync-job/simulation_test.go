package main

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"signalbox.dev/infra/sim"
	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/functest"
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
	own := func(w *sim.World) sim.Read { return sim.Read{Job: string(w.Job(syncjobs.Running))} }
	sim.Suite{
		Alone: []sim.Scenario{
			{Name: "responses", Assemble: assemble, Set: askResponses},
			{Name: "jobs", Assemble: assemble, Set: askJobs}, {Name: "events", Assemble: assemble, Set: askEvents},
			one("own job", both, own),
			one("another account's job", both, func(w *sim.World) sim.Read { return sim.Read{Job: string(foreignJob(w)), Never: true} }),
			one("unknown job", both, func(*sim.World) sim.Read { return sim.Read{Job: string(ids.New[ids.Job]()), Never: true} }),
			one("no UUID", []string{getKey}, func(*sim.World) sim.Read { return sim.Read{Job: testkit.Marker, Never: true} }),
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
			{Name: "the job finishes", Assemble: assemble, Set: func(w *sim.World) {
				job := w.Job(syncjobs.Running)
				w.Read("A", sim.Read{Job: string(job)})
				w.Step("succeed", job, syncjobs.Succeeded, syncjobs.Running)
				w.Step("fail", job, syncjobs.Failed, syncjobs.Running, syncjobs.Queued)
			}},
			{Name: "revoke key", Assemble: assemble, Set: func(w *sim.World) {
				w.Read("A", own(w))
				w.RevokeKey("revoke key", w.Tenant.Management)
			}},
		},
		Crowds: []sim.Scenario{
			{Name: "two workers", Assemble: assemble, Set: func(w *sim.World) {
				job := w.Job(syncjobs.Queued)
				w.Read("A", sim.Read{Job: string(job)})
				w.Step("start", job, syncjobs.Running, syncjobs.Queued)
				w.Step("start too", job, syncjobs.Running, syncjobs.Queued)
				w.Step("succeed", job, syncjobs.Succeeded, syncjobs.Running)
			}},
		},
	}.Play(t)
}

// foreignJob makes a job of another account.
func foreignJob(w *sim.World) ids.Job {
	job, err := w.Direct.Jobs.Create(w.TB().Context(), testkit.NewTenant(w.TB(), w.Tenant.Registry).ID)
	testkit.Must(w.TB(), err)
	return job
}

// askResponses compares the response to each state of a job with testdata. Another
// account's job gets the same response as a missing job.
func askResponses(w *sim.World) {
	failed := w.Job(syncjobs.Queued)
	testkit.Must(w.TB(), w.Direct.Jobs.Fail(w.TB().Context(), w.Tenant.ID, failed, "The directory refused the connection."))
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

// askJobs asks for jobs of every kind, with entity tags and as every caller.
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
	for _, id := range []string{
		"", string(w.Tenant.Workspace), job[:35], job + "0", "{" + job[1:35] + "}", job[:8] + "0" + job[9:], job[:13] + "0" + job[14:], job[:18] + "0" + job[19:], job[:23] + "0" + job[24:],
		job[:35] + "/", job[:35] + ":", job[:35] + "@", job[:35] + "G", job[:35] + "`", job[:35] + "g", "-" + job[1:],
	} {
		w.Ask("404", readRequest(id))
	}
	for _, id := range []string{"0f9a8b7c-0000-4000-8000-0123456789af", "0F9A8B7C-0000-4000-8000-0123456789AF"} {
		w.Ask("404", readRequest(id), `"aws_calls":2`)
	}
	stranger := testkit.NewTenant(w.TB(), w.Tenant.Registry)
	w.Ask("404", own.As(stranger.Management))
	w.Ask("401 management_key_required", own.As(w.StandardKey("")))
	w.Ask("401 management_key_required", readRequest("x").As(w.StandardKey("")))
	key := testkit.Key("job#" + finished)
	for _, damage := range []string{"v=2", "v", "status=other", "status", "synced_groups=x", "created_at=x"} {
		w.Damaged("sync-jobs", key, damage, func() {
			w.Ask("500", readRequest(finished), "stored sync job "+finished)
			w.Ask("404", readRequest(finished).As(stranger.Management), "stored sync job "+finished)
		})
	}
	w.Damaged("sync-jobs", key, "account", func() { w.Ask("404", readRequest(finished), "stored sync job "+finished) })
	for damage, text := range map[string]string{"status=queued": `"started_at":null,"finished_at":null`, "status=failed": `"synced_groups":null,"deleted_groups":null`, "finished_at": `"finished_at":null`} {
		w.Damaged("sync-jobs", key, damage, func() { w.Ask("200", readRequest(finished), text) })
	}
	ctx, writer, account := w.TB().Context(), w.Direct.Jobs, w.Tenant.ID
	invalid := []error{writer.Succeed(ctx, account, ids.Job(job), -1, 0), writer.Succeed(ctx, account, ids.Job(job), 0, -1)}
	for _, message := range []string{"", "\xff", strings.Repeat("é", 1001)} {
		invalid = append(invalid, writer.Fail(ctx, account, ids.Job(job), message))
	}
	for i, err := range invalid {
		if !errors.Is(err, syncjobs.ErrInvalid) {
			w.TB().Errorf("step %d of the worker: %v", i, err)
		}
	}
	w.AskCallers("200", own)
}

// askEvents sends events that gateways and consoles send, and events that no gateway
// sends.
func askEvents(w *sim.World) {
	job := string(w.Job(syncjobs.Running))
	// Each text in it is replaced by the one after it.
	send := func(want string, replaced ...string) {
		event := `{"resource":"/api/v1/scim/sync-jobs/{id}","httpMethod":"GET","headers":{"authorization":"Bearer KEY"},"pathParameters":{"id":"` + job + `"},` +
			`"requestContext":{"requestId":"r","identity":{"sourceIp":"192.0.2.1"}},"body":null,"isBase64Encoded":false}`
		w.AskRaw(want, strings.NewReplacer("KEY", w.Tenant.Management).Replace(strings.NewReplacer(replaced...).Replace(event)))
	}
	send("200")
	const single, body = `"headers":{`, `"body":null`
	send("200", single, `"multiValueHeaders":null,"headers":{`)
	send("401 missing", single, `"multiValueHeaders":{},"headers":{`)
	send("200", `"Bearer KEY"`, `["Bearer KEY"]`)
	send("200", single, `"headers":{"x":"","`+"\\u0000"+`":["a",7,true,null,{"a":[]}],`, body, `"body":"x","other":[{"a":1}]`)
	send("401 malformed", single, `"headers":{"Authorization":"Basic x",`)
	send("401 malformed", `"Bearer KEY"`, `null`)
	send("401 malformed", `"Bearer KEY"`, `[]`)
	send("401 missing", single, `"multiValueHeaders":{"Authorization":[]},"headers":{`)
	send("401 malformed", `"Bearer KEY"`, `7`)
	send("401 malformed", `"Bearer KEY"`, `["Bearer KEY","Bearer KEY"]`)
	send("404", `"pathParameters":{`, `"pathParameters":{"id":"`+job+`",`)
	send("404", `"id":"`+job+`"`, `"id":["`+job+`","`+job+`"]`)
	send("200", `"id":"`+job+`"`, `"id":["`+job+`"]`)
	send("404", `"id":"`+job+`"`, `"id":7`)
	send("404", `"pathParameters":{"id":"`+job+`"}`, `"pathParameters":null`)
	send("200", `"requestContext":{"requestId":"r","identity":{"sourceIp":"192.0.2.1"}}`, `"requestContext":null`)
	send("200", `"identity":{"sourceIp":"192.0.2.1"}`, `"identity":null,"other":1`)
	send("200", `"isBase64Encoded":false`, `"isBase64Encoded":true`)
	for _, replaced := range [][]string{
		{`"isBase64Encoded":false`, `"isBase64Encoded":7`}, {`"isBase64Encoded":false}`, `"isBase64Encoded":false} {}`}, {`"isBase64Encoded":false}`, ``},
		{body, `"body":7`}, {body, `"body":"!","isBase64Encoded":true,"other":1`}, {`"isBase64Encoded":false`, `"isBase64Encoded":true`, body, `"body":"!"`},
		{`"httpMethod"`, `"httpMethod":"GET","httpMethod"`}, {`"GET"`, `7`}, {`"identity":{"sourceIp":"192.0.2.1"}`, `"identity":7`}, {single, `"multiValueHeaders":7,"headers":{`},
		{`"pathParameters":{"id":"` + job + `"}`, `"pathParameters":[]`}, {`"192.0.2.1"`, `1`},
	} {
		send("500", replaced...)
	}
	w.Ask("200", readRequest(job).Asking("id", "x", "y").With("X-Request-Id", testkit.Marker))
	for _, event := range []string{"", "{", "[]", "null", "7", `{"requestContext":{"requestId":"r"},`} {
		want := "500"
		if event == "null" {
			want = "404"
		}
		w.AskRaw(want, event)
	}
}
