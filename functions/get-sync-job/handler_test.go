package main

import (
	"strings"
	"testing"

	"signalbox.dev/infra/testkit/functest"
)

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
