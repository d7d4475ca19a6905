package main

import (
	"testing"

	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/ids"
)

func TestRoundTrips(t *testing.T) {
	s := functest.New(t, assemble)
	plain, versioned := newCabinet(t, s, off), newCabinet(t, s, enabled)
	tenant := s.Tenant(t)
	const (
		key, slot          = "GetItem key#", "UpdateItem limit#"
		account, workspace = "GetItem account#", "GetItem workspace#"
		erase              = "DeleteObject"
		list, purge        = "ListObjectVersions", "DeleteObjects"
	)
	named := func(d *desk) functest.Event { return remove(d.workspace, string(d.file)).As(d.key) }
	unnamed := func(d *desk) functest.Event { return remove("", string(d.file)).As(d.key) }
	for _, c := range []struct {
		name    string
		cabinet *cabinet
		fill    func(*desk)
		event   func(*desk) functest.Event
		inLine  int
		calls   []string
	}{
		{"a file", plain, (*desk).one, named, 2, []string{key, slot, workspace, erase}},
		{"default workspace", plain, (*desk).one, unnamed, 3, []string{key, slot, account, erase}},
		{"bound key", plain, (*desk).one, func(d *desk) functest.Event { return unnamed(d).As(tenant.Standard(t, d.workspace)) }, 2,
			[]string{key, slot, erase}},
		{"within the burst", plain, (*desk).one, func(d *desk) functest.Event { return d.used(named(d).Limited("1", "2")) }, 3,
			[]string{key, slot, slot, workspace, erase}},
		{"no such file", plain, (*desk).nothing, named, 3, []string{key, slot, workspace, erase, list}},
		{"limit exceeded", plain, (*desk).one, func(d *desk) functest.Event { return d.used(named(d).Limited("1", "1")) }, 1,
			[]string{key, slot, workspace}},
		{"no file id", plain, (*desk).one, func(d *desk) functest.Event { return named(d).At("file_id", "x") }, 1, []string{key, slot}},
		{"no workspace id", plain, (*desk).one, func(d *desk) functest.Event { return named(d).Asking("workspace_id", "x") }, 1, []string{key, slot}},
		{"unknown key", plain, (*desk).one, func(d *desk) functest.Event { return named(d).As(functest.Marker + string(d.file)) }, 1,
			[]string{key, slot, workspace}},
		{"two versions", versioned, (*desk).two, named, 6, []string{key, slot, workspace, erase, list, purge, purge, list}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &desk{TB: t, cabinet: c.cabinet, workspace: tenant.Workspace, file: ids.NewFile(), key: tenant.Standard(t, "")}
			c.fill(d)
			functest.CheckCost(t, c.cabinet.Instance().Invoke(t, c.event(d)), c.inLine, c.calls...)
		})
	}
}

// Once an instance knows where a key's limiter stands, a deletion within the
// burst costs what one from idle does.
func TestRoundTripsInARow(t *testing.T) {
	s := functest.New(t, assemble)
	c, tenant := newCabinet(t, s, off), s.Tenant(t)
	f, key := c.Instance(), tenant.Standard(t, "")
	for range 20 {
		d := &desk{TB: t, cabinet: c, workspace: tenant.Workspace, file: ids.NewFile(), key: key}
		d.one()
		got := f.Invoke(t, remove(d.workspace, string(d.file)).As(key).Limited("1", "20"))
		got.Is(t, done)
		functest.CheckCost(t, got, 2, "GetItem key#", "UpdateItem limit#", "GetItem workspace#", "DeleteObject")
	}
	got := f.Invoke(t, remove(tenant.Workspace, "file_a").As(key).Limited("1", "20"))
	got.Is(t, refused)
	functest.CheckCost(t, got, 1, "GetItem key#", "UpdateItem limit#", "GetItem workspace#")
}
