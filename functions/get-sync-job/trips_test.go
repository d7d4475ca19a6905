package main

import (
	"testing"

	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/ids"
)

// Each kind of request waits for AWS once.
func TestRoundTrips(t *testing.T) {
	o := newOffice(t)
	f, job := o.Instance(), string(o.job(t, queued))
	for name, e := range map[string]functest.Event{
		"own job":      read(job).As(o.tenant.Management),
		"unknown job":  read(string(ids.New[ids.Job]())).As(o.tenant.Management),
		"standard key": read(job).As(o.tenant.Standard(t, "")),
		"unknown key":  read(job).As(functest.Marker),
	} {
		t.Run(name, func(t *testing.T) { functest.CheckCost(t, f.Invoke(t, e), 1, "GetItem key#", "GetItem job#") })
	}
	t.Run("no UUID", func(t *testing.T) {
		functest.CheckCost(t, f.Invoke(t, read("x").As(o.tenant.Management)), 1, "GetItem key#")
	})
	t.Run("no key", func(t *testing.T) { functest.CheckCost(t, f.Invoke(t, read(job)), 0) })
}
