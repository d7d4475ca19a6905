package main

import (
	"strings"
	"testing"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/infra/testkit/functest"
)

func TestResponses(t *testing.T) {
	o := newOffice(t)
	s := functest.Script{Function: o.Instance(), Names: map[string]string{
		"MANAGEMENT_KEY": o.tenant.Management,
		"STANDARD_KEY":   o.tenant.Standard(t, ""),
		"STRANGERS_KEY":  o.Tenant(t).Management,
	}}
	for name, on := range map[string]move{"QUEUED": queued, "RUNNING": running, "SUCCEEDED": succeeded, "FAILED": failed} {
		s.Names["JOB_"+name] = string(o.job(t, on))
	}
	for _, event := range []string{
		"queued", "succeeded", "failed", "absent", "foreign", "malformed", "no-key", "standard-key", "unknown-key",
	} {
		s.Play(t, event, event)
	}
	s.Names["ETAG"] = strings.Trim(s.Play(t, "running", "running").Header["ETag"], `"`)
	s.Play(t, "unchanged", "unchanged")
	s.Function.Faults.Inject(faults.Rule{Kind: "job#", Fault: faults.Refuse()})
	s.Play(t, "running", "unavailable")
	s.Complete(t)
}

// A row that holds what its state does not carry, or lacks what it does, is told
// as its state allows.
func TestFieldsAgreeWithTheState(t *testing.T) {
	o := newOffice(t)
	job := o.job(t, succeeded)
	o.reopen(t, job)
	got := o.Instance().Invoke(t, read(strings.ToUpper(string(job))).As(o.tenant.Management))
	checkJob(t, got)
	if !strings.Contains(got.Body, `"`+string(job)+`","status":"queued"`) || strings.Count(got.Body, ":null") != 5 {
		t.Errorf("a queued job with leftovers is told as %s", got.Body)
	}
}
