package main

import (
	"net/http"
	"testing"

	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// TestTenants reads every kind of job as every kind of caller.
func TestTenants(t *testing.T) {
	f := newFixture(t)
	home, stranger := f.tenant, f.env.NewTenant(t)
	job := f.newJob(t, home.ID, "succeeded")
	resources := []struct {
		name, id string
		owner    ids.Account
		group    string // of those that take the same calls
	}{
		{"own", job, home.ID, "a UUID"},
		{"another account's", f.newJob(t, stranger.ID, "succeeded"), stranger.ID, "a UUID"},
		{"unknown", string(ids.New[ids.Job]()), "", "a UUID"},
		{"a workspace's id", string(home.Workspace), "", "a UUID"},
		{"malformed", "urn:uuid:" + job, "", "no UUID"},
		{"empty", "", "", "no UUID"},
	}
	instance := f.env.Instance()
	for _, c := range functest.Callers(t, home, stranger, home.NewWorkspace(t)) {
		var absent functest.Indistinguishable
		for _, r := range resources {
			t.Run(c.Name+"/"+r.name, func(t *testing.T) {
				got := instance.Invoke(t, c.As(readRequest(r.id)))
				switch {
				case c.Reason != "":
					got.Refused(t, c.Reason)
				case !c.Manages:
					got.Refused(t, string(auth.ManagementKeyRequired))
				case r.owner != c.Account:
					if got.Is(t, http.StatusNotFound) {
						absent.Check(t, r.group, got)
					}
				case got.Is(t, http.StatusOK):
					checkJob(t, got)
				}
			})
		}
	}
}
