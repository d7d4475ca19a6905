package main

import (
	"net/http"
	"testing"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/ids"
)

// TestEveryFault makes every call of every kind of request fail in every way, and
// counts the round trips of each.
func TestEveryFault(t *testing.T) {
	f := newFixture(t)
	job := f.newJob(t, f.tenant.ID, "running")
	stranger := f.env.NewTenant(t)
	read := func(id, token string) functest.Event { return readRequest(id).As(token) }
	sound := f.env.Instance().Invoke(t, read(job, f.tenant.Management))
	checkJob(t, sound)
	same := func(t testing.TB, a functest.Answer) {
		if a.Status == http.StatusOK && a.Body != sound.Body || a.Status == http.StatusNotModified && a.Body != "" {
			t.Errorf("status %d, body %s, want %s", a.Status, a.Body, sound.Body)
		}
	}
	scenario := func(name string, status int, e functest.Event, calls []string, except ...functest.Exception) functest.Scenario {
		return functest.Scenario{Name: name, Status: status, Calls: calls, RoundTrips: min(len(calls), 1), Except: except, Set: func(testing.TB) functest.Case {
			return functest.Case{
				Env: f.env, Event: e,
				Check: same,
				Settled: func(t testing.TB, _, again functest.Answer) {
					again.Is(t, status)
					same(t, again)
				},
			}
		}}
	}
	both := []string{getKey, getJob}
	// A caller who is refused gets the 401 whatever became of the job's look-up.
	refused := functest.ExceptCall(getJob, 401)
	functest.Survive(t, []int{200, 304, 401, 404, 500},
		scenario("own job", 200, read(job, f.tenant.Management), both),
		scenario("unchanged", 304, read(job, f.tenant.Management).With("If-None-Match", sound.Header["ETag"]), both),
		scenario("another account's job", 404, read(job, stranger.Management), both),
		scenario("unknown job", 404, read(string(ids.New[ids.Job]()), f.tenant.Management), both),
		scenario("no UUID", 404, read(testkit.Marker, f.tenant.Management), []string{getKey}),
		scenario("standard key", 401, read(job, f.tenant.StandardKey(t, "")), both, refused...),
		scenario("unknown key", 401, read(job, testkit.Marker), both, refused...),
		scenario("no key", 401, readRequest(job), nil),
	)
	f.env.SearchTables(t)
}
