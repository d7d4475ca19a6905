package main

import (
	"strings"
	"testing"

	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/ids"
)

// desk is one file in one workspace, and one key that asks for its deletion.
type desk struct {
	testing.TB
	*cabinet
	workspace ids.Workspace
	file      ids.File
	key       string
}

const (
	newest = "the newest content"
	older  = "older content"
)

func (d *desk) one() { d.put(d, d.workspace, d.file, newest) }

func (d *desk) two() {
	d.put(d, d.workspace, d.file, older)
	d.put(d, d.workspace, d.file, newest)
}

func (d *desk) hidden() {
	d.two()
	d.hide(d, d.workspace, d.file)
}

func (d *desk) nothing() {}

// used has spent a slot of its limiter before.
func (d *desk) used(e functest.Event) functest.Event {
	d.Helper()
	prior := e.At("file_id", "file_none")
	if got := d.Instance().Invoke(d, prior); got.Status != absent {
		d.Fatalf("spending a slot: status %d", got.Status)
	}
	return e
}

// testCase is the world of one request: status is how it ends without a fault.
func (d *desk) testCase(status int, e functest.Event) functest.Case {
	d.put(d, d.workspace, d.file+"0", "sibling")
	d.put(d, d.workspace, d.file+"1", "hidden sibling")
	d.hide(d, d.workspace, d.file+"1")
	before := d.look(d, d.workspace, d.file)
	var halfway drawer
	return functest.Case{
		Env: d.Env, Event: e,
		Check: func(t testing.TB, first functest.Answer) {
			d.judge(t, first)
			halfway = d.look(t, d.workspace, d.file)
			lost := first.Line["answer_lost"] == true
			switch {
			case first.Status == done && halfway.left > 0:
				t.Errorf("200, and %+v is left", halfway)
			case first.Status == absent && status == done && (halfway.left > 0 || !lost):
				t.Errorf("404 of a file that was there, %+v left, answer lost: %v", halfway, lost)
			case (status != done || first.Status == refused) && halfway != before:
				t.Errorf("nothing was to be done, and %+v of %+v is left", halfway, before)
			case halfway.seen != 0 && halfway != before:
				t.Errorf("half way it can be read: %+v of %+v", halfway, before)
			}
		},
		Settled: func(t testing.TB, first, again functest.Answer) {
			d.judge(t, again)
			want, end := status, before
			if status == done {
				end = drawer{siblings: before.siblings}
				if halfway.left == 0 {
					want = absent
				}
			}
			if again.Status != want {
				t.Errorf("again after %d with %+v left: status %d, want %d", first.Status, halfway, again.Status, want)
			}
			if left := d.look(t, d.workspace, d.file); left != end {
				t.Errorf("in the end %+v is left, want %+v", left, end)
			}
		},
	}
}

// judge checks what every answer of the operation owes.
func (d *desk) judge(t testing.TB, a functest.Answer) {
	t.Helper()
	if a.Status == done {
		var body map[string]any
		a.Decode(t, &body)
		functest.HasMembers(t, body, "id", "type")
		if body["id"] != string(d.file) || body["type"] != "file_deleted" {
			t.Errorf("body %s", a.Body)
		}
	}
	limited := a.Status == done || a.Status == absent || a.Status == refused
	for _, name := range []string{"RateLimit", "RateLimit-Policy", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		if (a.Header[name] != "") != limited {
			t.Errorf("status %d, %s %q", a.Status, name, a.Header[name])
		}
	}
	if after := a.Header["Retry-After"]; (after != "") != (a.Status == refused) || strings.HasPrefix(after, "0") {
		t.Errorf("status %d, Retry-After %q", a.Status, after)
	}
	if letIn := a.Line["account"] != nil; letIn != (a.Audit != nil) {
		t.Errorf("let in: %v, audit line: %v", letIn, a.Audit)
	}
	want := map[int]any{done: "done", absent: "refused", refused: "refused", failed: "uncertain"}[a.Status]
	if a.Audit != nil && a.Audit["outcome"] != want {
		t.Errorf("audit: outcome %v, want %v", a.Audit["outcome"], want)
	}
}
