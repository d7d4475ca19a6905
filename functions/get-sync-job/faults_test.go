package main

import (
	"net/http"
	"testing"

	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/ids"
)

// TestEveryFault lets every call of every kind of request fail in every way.
func TestEveryFault(t *testing.T) {
	o := newOffice(t)
	job := string(o.job(t, running))
	tenant, stranger := o.tenant, o.Tenant(t)
	var known functest.Answer // the job, as it is told to somebody who meets no fault
	same := func(t testing.TB, a functest.Answer) {
		if a.Status == http.StatusOK && a.Body != known.Body || a.Status == http.StatusNotModified && a.Body != "" {
			t.Errorf("status %d, body %s, want %s", a.Status, a.Body, known.Body)
		}
	}
	known = o.Instance().Invoke(t, read(job).As(tenant.Management))
	checkJob(t, known)
	scenario := func(name string, status int, e functest.Event, except ...functest.Exception) functest.Scenario {
		return functest.Scenario{Name: name, Status: status, Except: except, Set: func(testing.TB) functest.Case {
			return functest.Case{
				Env: o.Env, Event: e,
				Check: same,
				Settled: func(t testing.TB, _, again functest.Answer) {
					if again.Status != status {
						t.Errorf("again: status %d, want %d", again.Status, status)
					}
					same(t, again)
				},
			}
		}}
	}
	refused := []functest.Exception{
		// Time runs out for both look-ups at once.
		{Step: "GetItem job#", Fault: "deadline", Status: []int{401, 500}},
		{Step: "GetItem job#", Fault: "deadline, applied", Status: []int{401, 500}},
		// Whoever is not let in hears of it, whatever became of the job.
		{Step: "GetItem job#", Status: []int{401}},
	}
	functest.Survive(t, []int{200, 304, 401, 404, 500},
		scenario("own job", 200, read(job).As(tenant.Management)),
		scenario("unchanged", 304, read(job).As(tenant.Management).With("If-None-Match", known.Header["ETag"])),
		scenario("another account's job", 404, read(job).As(stranger.Management)),
		scenario("unknown job", 404, read(string(ids.New[ids.Job]())).As(tenant.Management)),
		scenario("no UUID", 404, read(functest.Marker).As(tenant.Management)),
		scenario("standard key", 401, read(job).As(tenant.Standard(t, "")), refused...),
		scenario("unknown key", 401, read(job).As(functest.Marker), refused...),
	)
	o.SearchTables(t)
}
