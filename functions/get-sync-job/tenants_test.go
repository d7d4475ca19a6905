package main

import (
	"net/http"
	"testing"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/enginetest/stage"
	"signalbox.dev/shared/ids"
)

// TestTenants asks for every kind of job as every kind of caller.
func TestTenants(t *testing.T) {
	o := newOffice(t)
	home, stranger := o.tenant, o.Tenant(t)
	f := o.Function()
	job := string(o.job(t, succeeded))
	o.tenant = stranger
	foreign := string(o.job(t, succeeded))
	resources := []struct {
		name, id string
		owner    ids.Account
		group    string // of those that cost the same calls
	}{
		{"own", job, home.ID, "a UUID"},
		{"another account's", foreign, stranger.ID, "a UUID"},
		{"unknown", string(ids.New[ids.Job]()), "", "a UUID"},
		{"a workspace's id", string(home.Workspace), "", "a UUID"},
		{"malformed", "urn:uuid:" + job, "", "no UUID"},
		{"empty", "", "", "no UUID"},
	}
	for _, c := range stage.Callers(t, home, stranger, home.Other(t)) {
		var absent stage.Lineup
		for _, r := range resources {
			t.Run(c.Name+"/"+r.name, func(t *testing.T) {
				e := c.As(read(r.id))
				e.RequestID = "the same for all"
				got := f.Invoke(t, e)
				switch {
				case !c.LetIn(t, got):
				case !c.Manages:
					got.Refused(t, string(auth.ManagementKeyRequired))
				case r.owner != c.Account:
					if got.Is(t, http.StatusNotFound) {
						absent.Alike(t, r.group, got)
					}
				case got.Is(t, http.StatusOK):
					checkJob(t, got)
				}
			})
		}
	}
}
