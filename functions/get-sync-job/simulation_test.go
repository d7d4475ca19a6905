package main

import (
	"testing"

	"signalbox.dev/infra/sim"
	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// TestSimulation plays requests with every fault of every call, and beside the
// steps of a job in every order of their calls.
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
			one("own job", both, own),
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
