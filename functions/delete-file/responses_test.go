package main

import (
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/test/cases"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
)

// TestResponses checks the limiter's headers. Another account's file gets the same response as a
// missing file.
func TestResponses(t *testing.T) {
	cases.OnModel(t, "", 0, func(w *cases.World) {
		ask := w.Asker(assemble)
		home, t := w.Tenant, w.TB()
		file, other := ids.NewFile(), home.NewWorkspace(t)
		limited := func(a functest.Answer, policy, limit, remaining, reset, retryAfter string) {
			for name, want := range map[string]string{
				"RateLimit-Policy": `"delete-file";` + policy, "RateLimit": `"delete-file";r=` + remaining + ";t=" + reset, "Retry-After": retryAfter,
				"X-RateLimit-Limit": limit, "X-RateLimit-Remaining": remaining, "X-RateLimit-Reset": reset,
			} {
				if a.Header[name] != want {
					t.Errorf("%d with %s %q, want %q", a.Status, name, a.Header[name], want)
				}
			}
		}
		// Each request has its own key, so its limiter is idle.
		idle := func(want string, e functest.Event) functest.Answer {
			a := ask(want, e.As(home.StandardKey(t, "")).Limited("60", "20"))
			limited(a, "q=20;w=20", "20", "19", "1", "")
			return a
		}
		unnamed, own := deleteRequest("", file), string(home.Workspace)
		missing := idle("404", unnamed).Text()
		putFile(w, file, "content")
		for _, e := range []functest.Event{
			deleteRequest(w.Stranger().Workspace, file), deleteRequest(other, file), unnamed.At("file_id", "file_a%2Fb"), unnamed.Asking("workspace_id", own, own),
		} {
			if got := idle("404", e).Text(); got != missing {
				t.Errorf("it differs from a missing file's %s: %s", missing, got)
			}
		}
		idle("200", unnamed)

		second := unnamed.As(home.StandardKey(t, "")).Limited("1", "1")
		ask("404", second)
		limited(ask("429", second), "q=1;w=60", "1", "0", "60", "60") // the next one passes a minute later
	})
}

// TestFiles deletes files in workspaces of every kind, as every kind of caller.
func TestFiles(t *testing.T) {
	cases.OnModel(t, "", 0, func(w *cases.World) {
		ask := w.Asker(assemble)
		home, t := w.Tenant, w.TB()
		other, stranger := w.Tenant.NewWorkspace(w.TB()), w.Stranger()
		removed := func(id ids.File, e functest.Event) {
			putFile(w, id, "content")
			if a := ask("200", e); a.Audit["file"] != string(id) || a.Audit["workspace"] != string(home.Workspace) || a.Audit["versions_removed"] != 1.0 {
				t.Errorf("%s: %v", id, a.Audit)
			}
		}
		kept := func(id ids.File, e functest.Event) {
			putFile(w, id, "content")
			ask("404", e)
			if w.File(id).Visible == 0 {
				t.Errorf("%q is deleted", id)
			}
		}
		removed("file_a", deleteRequest("", "file_a"))
		ask("404", deleteRequest("", "file_a"), `"aws_calls":5`)
		kept("file_a.", deleteRequest("", "file_a."))
		in := func(workspaces ...string) functest.Event {
			return deleteRequest("", file).Asking("workspace_id", workspaces...)
		}
		own := string(home.Workspace)
		removed(file, in(own))
		removed(file, in(strings.ToUpper(own)))
		removed(file, in(own).As(home.StandardKey(t, home.Workspace)))
		removed(file, deleteRequest("", file).As(home.StandardKey(t, home.Workspace)))
		removed(file, deleteRequest("", file).As(home.StandardKey(t, "")))
		for _, named := range [][]string{{""}, {own, own}, {own[1:]}, {string(other)}, {string(stranger.Workspace)}, {string(home.DeletedWorkspace(t))}, {string(ids.New[ids.Workspace]())}} {
			kept(file, in(named...))
		}
		kept(file, in(own).As(stranger.Management))
		kept(file, deleteRequest("", file).As(stranger.Management))
		kept(file, in(own).As(home.StandardKey(t, other)))
		kept(file, deleteRequest("", file).As(home.StandardKey(t, other)))
		row := kit.Key("workspace#"+own, "workspace")
		w.Damaged(w.Outputs.Access, row, func() {
			ask("500", in(own), "stored workspace "+own)
			ask("404", in(own).As(stranger.Management), "stored workspace "+own)
			ask("404", in(own).As(home.StandardKey(t, other)), "stored workspace "+own)
		})
		account := kit.Key("account#"+string(home.ID), "account")
		w.Damaged(w.Outputs.Access, account, func() { ask("500", deleteRequest("", file), "stored account "+string(home.ID)) })
	})
}

// TestRates asks under invalid rates, then until a rate is used up and free again.
func TestRates(t *testing.T) {
	cases.OnModel(t, "", 0, func(w *cases.World) {
		ask := w.Asker(assemble)
		for _, rate := range [][2]string{{"", "20"}, {"60", ""}, {"many", "20"}, {"60", "20.5"}, {"0", "20"}, {"60", "0"}} {
			ask("500", deleteRequest("", "file_absent").Limited(rate[0], rate[1]), `"error":{"text":`)
		}
		ask("404", deleteRequest("", "file_absent").Limited("1000000", "100000"))
		e := deleteRequest("", "file_absent").As(w.Tenant.StandardKey(w.TB(), "")).Limited("7", "3")
		began := time.Now()
		for range 3 {
			ask("404", e)
		}
		ask("429", e)
		const interval = 8571428572 // nanoseconds, rounded up
		time.Sleep(time.Until(began.Add(interval - 1)))
		ask("429", e)
		ask("404", e)
		ask("429", e)
	})
}

// putFile stores a version of a file of the tenant's workspace.
func putFile(w *cases.World, f ids.File, content string) {
	w.Bucket().Put(w.TB(), files.Key(w.Tenant.Workspace, f), content)
}
