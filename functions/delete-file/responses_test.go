package main

import (
	"fmt"
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
	cases.OnModel(t, "", 0, func(env *cases.Environment) {
		ask := env.Asker(assemble)
		home, t := env.Tenant, env.TB()
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
		putFile(env, file, "content")
		for _, e := range []functest.Event{
			deleteRequest(env.Stranger().Workspace, file), deleteRequest(other, file), deleteRequest(home.DeletedWorkspace(t), file), deleteRequest(ids.New[ids.Workspace](), file),
			unnamed.At("file_id", "file_a%2Fb"), unnamed.At("file_id", "file_a."),
			unnamed.Asking("workspace_id", ""), unnamed.Asking("workspace_id", own[1:]), unnamed.Asking("workspace_id", own, own),
		} {
			if got := idle("404", e).Text(); got != missing {
				t.Errorf("it differs from a missing file's %s: %s", missing, got)
			}
		}
		if env.File(file).Visible == 0 {
			t.Error("one of them deleted it")
		}
		idle("200", unnamed)

		second := unnamed.As(home.StandardKey(t, "")).Limited("1", "1")
		ask("404", second)
		limited(ask("429", second), "q=1;w=60", "1", "0", "60", "60") // the next one passes a minute later
	})
}

// TestBoundKeys deletes with keys that are bound to a workspace, and while a row is damaged.
func TestBoundKeys(t *testing.T) {
	cases.OnModel(t, "", 0, func(env *cases.Environment) {
		ask := env.Asker(assemble)
		home, t, stranger := env.Tenant, env.TB(), env.Stranger()
		own, elsewhere := string(home.Workspace), home.StandardKey(t, home.NewWorkspace(t))
		unnamed := deleteRequest("", file)
		named := unnamed.Asking("workspace_id", own)
		putFile(env, file, "content")
		ask("404", unnamed.As(elsewhere))
		env.Damaged(env.Outputs.Access, kit.Key("workspace#"+own, "workspace"), func() {
			ask("500", named, "stored workspace "+own)
			ask("404", named.As(stranger.Management), "stored workspace "+own)
			ask("404", named.As(elsewhere), "stored workspace "+own)
		})
		env.Damaged(env.Outputs.Access, kit.Key("account#"+string(home.ID), "account"), func() { ask("500", unnamed, "stored account "+string(home.ID)) })
		for _, e := range []functest.Event{named.Asking("workspace_id", strings.ToUpper(own)), named, unnamed} {
			ask("200", e.As(home.StandardKey(t, home.Workspace)))
			putFile(env, file, "content")
		}
	})
}

// TestRates asks under invalid rates, then until a rate is used up and free again.
func TestRates(t *testing.T) {
	cases.OnModel(t, "", 0, func(env *cases.Environment) {
		ask := env.Asker(assemble)
		for _, rate := range [][2]string{{"", "20"}, {"60", ""}, {"many", "20"}, {"60", "20.5"}, {"0", "20"}, {"60", "0"}} {
			ask("500", deleteRequest("", "file_absent").Limited(rate[0], rate[1]), `"error":{"text":`)
		}
		e := deleteRequest("", "file_absent").As(env.Tenant.StandardKey(env.TB(), "")).Limited("7", "3")
		began := time.Now()
		for range 3 {
			ask("404", e)
		}
		h := ask("429", e).Header
		if got := fmt.Sprint(h["Retry-After"], " ", h["X-RateLimit-Reset"], " ", h["RateLimit-Policy"], h["RateLimit"]); got != `9 26 "delete-file";q=3;w=26"delete-file";r=0;t=26` {
			env.TB().Errorf("a second is rounded down: %s", got)
		}
		const interval = 8571428572 // nanoseconds, rounded up
		time.Sleep(time.Until(began.Add(interval - 1)))
		ask("429", e)
		ask("404", e)
		ask("429", e)
	})
}

// putFile stores a version of a file of the tenant's workspace.
func putFile(env *cases.Environment, f ids.File, content string) {
	env.Bucket().Put(env.TB(), files.Key(env.Tenant.Workspace, f), content)
}
