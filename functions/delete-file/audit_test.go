package main

import (
	"net/http"
	"sync"
	"testing"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/ids"
)

// The audit line tells which file of which workspace was meant, how much of it
// this very call removed, and whether that is all that can be known.
func TestTheAuditLineTellsWhatBecameOfTheFile(t *testing.T) {
	s := functest.New(t, assemble)
	plain, versioned := newCabinet(t, s, off), newCabinet(t, s, enabled)
	tenant := s.Tenant(t)
	for _, c := range []struct {
		name      string
		cabinet   *cabinet
		fill      func(*desk)
		rules     []faults.Rule
		status    int
		versions  any
		uncertain any
	}{
		{"a file", plain, (*desk).one, nil, done, 1.0, nil},
		{"two versions", versioned, (*desk).two, nil, done, 2.0, nil},
		{"no such file", plain, (*desk).nothing, nil, absent, nil, nil},
		{"out of reach", plain, (*desk).one, []faults.Rule{{Operation: "DeleteObject", Fault: faults.Answer(403, "AccessDenied", "no")}}, failed, nil, nil},
		{"failed half way", versioned, (*desk).two, []faults.Rule{{Operation: "DeleteObjects", Call: 2, Fault: faults.Answer(403, "AccessDenied", "no")}}, failed, 2.0, nil},
		{"answer lost", plain, (*desk).one, []faults.Rule{{Operation: "DeleteObject", Attempt: 1, Fault: faults.LoseAnswer()}}, absent, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &desk{TB: t, cabinet: c.cabinet, workspace: tenant.Workspace, file: ids.NewFile(), key: tenant.Standard(t, "")}
			c.fill(d)
			got := c.cabinet.Instance().InvokeAmid(t, remove("", string(d.file)).As(d.key), c.rules)
			if got.Status != c.status {
				t.Fatalf("status %d, want %d", got.Status, c.status)
			}
			for field, want := range map[string]any{
				"operation": "deleteFile", "file": string(d.file), "workspace": string(d.workspace),
				"versions_removed": c.versions, "answer_lost": c.uncertain,
			} {
				if got.Audit[field] != want {
					t.Errorf("%s is %v, want %v", field, got.Audit[field], want)
				}
			}
		})
	}
}

// A request whose time runs out leaves less to the next one, and its audit line
// says how much it removed.
func TestMoreVersionsThanOneRequestDeletes(t *testing.T) {
	s := functest.New(t, assemble)
	c, tenant := newCabinet(t, s, enabled), s.Tenant(t)
	d := &desk{TB: t, cabinet: c, workspace: tenant.Workspace, file: ids.NewFile(), key: tenant.Standard(t, "")}
	const versions, firstPage = 1008, 999 // beside the marker of the first request
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range versions / 8 {
				d.one()
			}
		})
	}
	writers.Wait()
	f, e := c.Instance(), remove("", string(d.file)).As(d.key)
	got := f.InvokeAmid(t, e, []faults.Rule{{Operation: "ListObjectVersions", Call: 2, Fault: func(r *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
		f.RunOut()
		return faults.Stall()(r, apply)
	}}})
	if got.Status != failed || got.Audit["versions_removed"] != float64(firstPage) {
		t.Errorf("status %d, audit line %v", got.Status, got.Audit)
	}
	f.Faults.Heal()
	got = f.Invoke(t, e.Again())
	if left := c.look(t, d.workspace, d.file); got.Status != done || left.left != 0 || got.Audit["versions_removed"] != float64(versions-firstPage) {
		t.Errorf("again: status %d, %d left, audit line %v", got.Status, left.left, got.Audit)
	}
}

// Without a limit that can be read nothing is deleted.
func TestAnUnreadableRateDeletesNothing(t *testing.T) {
	s := functest.New(t, assemble)
	c, tenant := newCabinet(t, s, off), s.Tenant(t)
	for _, rate := range [][2]string{{"", "20"}, {"60", ""}, {"many", "20"}, {"60", "20.5"}, {"0", "20"}, {"60", "-1"}, {"9223372036854775808", "20"}} {
		d := &desk{TB: t, cabinet: c, workspace: tenant.Workspace, file: ids.NewFile(), key: tenant.Standard(t, "")}
		d.one()
		got := c.Instance().Invoke(t, remove("", string(d.file)).As(d.key).Limited(rate[0], rate[1]))
		if left := c.look(t, d.workspace, d.file); got.Status != failed || left.left != 1 || got.Line["stack"] != nil {
			t.Errorf("rate %q: status %d, %d versions are left, %v", rate, got.Status, left.left, got.Line)
		}
	}
}
