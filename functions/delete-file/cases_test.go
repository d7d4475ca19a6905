package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/test/cases"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
)

// The calls of the function.
const (
	key, slot          = "GetItem key#", "UpdateItem limit#"
	account, workspace = "GetItem account#", "GetItem workspace#"
	erase              = "DeleteObject"
	list, purge        = "ListObjectVersions", "DeleteObjects"
)

// deleteRequest asks for the deletion of a file; workspace "" names none.
func deleteRequest(w ids.Workspace, file ids.File) functest.Event {
	e := functest.NewEvent(http.MethodDelete, "/api/v1/files/{file_id}").At("file_id", string(file))
	if w == "" {
		return e
	}
	return e.Asking("workspace_id", string(w))
}

const file = ids.File("file_1")

const enabled, suspended = "Enabled", "Suspended"

// storedFile stores a file, and others with names that begin like its name. Each "w" writes a
// version, each "m" adds a delete marker. It returns what is stored.
func storedFile(w *cases.World, history string) kit.Objects {
	return cases.Prepared(w, func() kit.Objects { return storeFile(w, history) })
}

func storeFile(w *cases.World, history string) kit.Objects {
	t, bucket, key := w.TB(), w.Bucket(), func(f ids.File) string { return files.Key(w.Tenant.Workspace, f) }
	for i, step := range history {
		if step == 'm' {
			bucket.Hide(t, key(file))
		} else {
			bucket.Put(t, key(file), strings.Repeat("x", 3+i))
		}
	}
	bucket.Put(t, key("file_10"), "sibling")
	bucket.Put(t, key("file_11"), "hidden sibling")
	bucket.Hide(t, key("file_11"))
	return w.File(file)
}

// deletes makes the act of a request, and changes it.
func deletes(w *cases.World, name string, change ...func(*cases.Request)) cases.Act {
	r := cases.Request{Assemble: assemble, Event: deleteRequest(w.Tenant.Workspace, file).As(w.Tenant.Management)}
	for _, c := range change {
		c(&r)
	}
	a := w.Request(name, r)
	a.Ends = func(c cases.Call, f *cases.Fault, each bool, plain string) []string {
		again := f.Recovers() && !each && !f.Usable() && c.Kind == erase // S3 says of these two that it applied nothing:
		again = again && f.Name != "throttled" && f.Name != "ConditionalRequestConflict" && f.Name != "OperationAborted"
		switch {
		case c.Kind == slot && f.OwnThrottle() && !strings.HasPrefix(plain, "401"):
			return []string{"429"}
		case again && (plain == "404" || w.Versioning == "" && f.Applied()):
			return []string{"404 answer_lost"}
		}
		return nil
	}
	return a
}

func as(token string) func(*cases.Request) {
	return func(r *cases.Request) { r.Event = r.As(token) }
}

func under(perMinute, burst int) func(*cases.Request) {
	return func(r *cases.Request) { r.Event = r.Limited(strconv.Itoa(perMinute), strconv.Itoa(burst)) }
}

// after makes requests of the same instance for another file before each pause.
func after(pauses ...time.Duration) func(*cases.Request) {
	return func(r *cases.Request) {
		for _, pause := range pauses {
			r.Earlier = append(r.Earlier, cases.Earlier{Event: r.At("file_id", "file_none"), Pause: pause})
		}
	}
}

// judgeFile judges the results of deletions, and what is left of the file. never means that no
// request may reach it.
func judgeFile(w *cases.World, history string, first kit.Objects, never bool) func([]cases.Done) {
	versions := strings.Count(history, "w")
	return func(done []cases.Done) {
		now, deleted, others := w.File(file), 0, false
		for _, d := range done {
			others = others || !d.Again && d.Fault == nil && d.Act != done[0].Act
		}
		for _, d := range done {
			answer, isRequest := d.Result.Shown.(functest.Answer)
			if !isRequest {
				continue
			}
			limited := answer.Status == 200 || answer.Status == 404 || answer.Status == 429
			for _, name := range []string{"RateLimit", "RateLimit-Policy", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
				if (answer.Header[name] != "") != limited {
					w.Broken("result", "%d with %s %q", answer.Status, name, answer.Header[name])
				}
			}
			if wait := answer.Header["Retry-After"]; (wait != "") != (answer.Status == 429) || strings.HasPrefix(wait, "0") {
				w.Broken("result", "%d with Retry-After %q", answer.Status, wait)
			}
			removed, _ := answer.Audit["versions_removed"].(float64)
			if int(removed) > versions && !slices.ContainsFunc(done, func(d cases.Done) bool { return d.Act == "upload" }) {
				w.Broken("line", "versions_removed is %v of %d", removed, versions)
			}
			if answer.Status != 200 {
				continue
			}
			deleted++
			if answer.Body != `{"id":"file_1","type":"file_deleted"}` || answer.Audit["file"] != string(file) || answer.Audit["workspace"] != string(w.Tenant.Workspace) {
				w.Broken("line", "200 %s with the audit line %v", answer.Body, answer.Audit)
			}
			if done[0].Fault == nil && !d.Again && !others && w.Versioning != suspended && int(removed) != versions {
				w.Broken("line", "versions_removed is %v of %d", removed, versions)
			}
		}
		unreachable := slices.ContainsFunc(done, func(d cases.Done) bool { return d.Act == "delete workspace" })
		uploaded := slices.ContainsFunc(done, func(d cases.Done) bool { return d.Act == "upload" && d.Result.Text == "done" })
		last := done[len(done)-1].Result.Text
		switch {
		case deleted > 0 && now.Left > 0 && !uploaded, never && now != first, strings.HasPrefix(last, "404") && now.Left > 0 && !never && !uploaded && !unreachable:
			w.Broken("stored", "after %s %d versions and markers are left of %d", last, now.Left, first.Left)
		case now.Visible != 0 && now.Visible != first.Visible && !uploaded:
			w.Broken("stored", "an older version of the file can be read: %d bytes", now.Visible)
		case now.Siblings != first.Siblings:
			w.Broken("stored", "%d versions of other files are left of %d", now.Siblings, first.Siblings)
		case w.Versioning == "" && deleted > 1 && !uploaded:
			w.Broken("result", "%d deletions of one file answer 200", deleted)
		}
	}
}

func TestCases(t *testing.T) {
	one := func(name, versioning, history, want string, rounds int, calls []string, prepare func(*cases.World) (cases.Act, []cases.Beside)) cases.Case {
		return cases.Case{Name: name, Versioning: versioning, Set: func(w *cases.World) cases.Play {
			first := storedFile(w, history)
			var beside []cases.Beside
			a := deletes(w, "delete")
			if prepare != nil {
				a, beside = prepare(w)
			}
			a.Want, a.Calls, a.Rounds = want, calls, rounds
			return cases.Play{Act: a, Beside: beside, Judge: judgeFile(w, history, first, want != "" && want != "200")}
		}}
	}
	request := func(changes func(*cases.World) []func(*cases.Request)) func(*cases.World) (cases.Act, []cases.Beside) {
		return func(w *cases.World) (cases.Act, []cases.Beside) { return deletes(w, "delete", changes(w)...), nil }
	}
	fixed := func(changes ...func(*cases.Request)) func(*cases.World) (cases.Act, []cases.Beside) {
		return request(func(*cases.World) []func(*cases.Request) { return changes })
	}
	unnamed := func(r *cases.Request) {
		r.Event = functest.NewEvent(r.Method, r.Resource).At("file_id", string(file)).With("Authorization", r.Header["Authorization"]...)
	}
	elsewhere := func(named func(*cases.World) ids.Workspace) func(*cases.World) (cases.Act, []cases.Beside) {
		return request(func(w *cases.World) []func(*cases.Request) {
			id := named(w)
			return []func(*cases.Request){func(r *cases.Request) { r.Event = r.Asking("workspace_id", string(id)) }}
		})
	}
	// paused are cases whose earlier requests need exact pauses.
	paused := func(name, want string, rounds int, calls []string, changes ...func(*cases.Request)) cases.Case {
		c := one(name, "", "w", want, rounds, calls, fixed(changes...))
		c.ModelOnly = "the pause before it must be exact"
		return c
	}
	besides := func(name, versioning, history string, beside func(*cases.World) []cases.Beside) cases.Case {
		return one(name, versioning, history, "", 0, nil, func(w *cases.World) (cases.Act, []cases.Beside) {
			a := deletes(w, "delete")
			a.NoMenu = true
			return a, beside(w)
		})
	}
	overVersions := besides("upload over versions", enabled, "ww", uploads)
	overVersions.ModelOnly = "versitygw refuses a conditional upload over a delete marker; S3 takes it"
	deletion, lookUp := []string{key, slot, workspace, erase}, []string{key, slot, workspace}
	everyVersion := []string{key, slot, workspace, erase, list, purge, purge, list}
	limited := one("limit exceeded", "", "w", "429", 1, lookUp, func(w *cases.World) (cases.Act, []cases.Beside) {
		a := deletes(w, "delete", under(1, 1), after(0))
		a.Spare = []string{workspace}
		return a, nil
	})
	cases.Suite{
		Cases: []cases.Case{
			one("a file", "", "w", "200", 2, deletion, nil),
			one("default workspace", "", "w", "200", 3, []string{key, slot, account, erase}, fixed(unnamed)),
			one("bound key", "", "w", "200", 2, []string{key, slot, erase}, request(func(w *cases.World) []func(*cases.Request) {
				return []func(*cases.Request){as(w.Tenant.StandardKey(w.TB(), w.Tenant.Workspace)), unnamed}
			})),
			paused("within the burst", "200", 2, deletion, under(1, 20), after(0)),
			one("two versions", enabled, "ww", "200", 6, everyVersion, nil),
			one("hidden by a deletion that stopped", enabled, "wwm", "200", 6, everyVersion, nil),
			one("versioning suspended", suspended, "w", "200", 5, []string{key, slot, workspace, erase, list, purge, list}, nil),
			one("no such file", "", "", "404", 3, append([]string{list}, deletion...), nil),
			one("no such file, versioned", enabled, "", "404", 3, append([]string{list}, deletion...), nil),
			one("another account's workspace", "", "w", "404", 1, lookUp, elsewhere(func(w *cases.World) ids.Workspace { return w.Stranger().Workspace })),
			one("unknown workspace", "", "w", "404", 1, lookUp, elsewhere(func(*cases.World) ids.Workspace { return ids.New[ids.Workspace]() })),
			one("out of a bound key's reach", "", "w", "404", 1, lookUp, request(func(w *cases.World) []func(*cases.Request) {
				return []func(*cases.Request){as(w.Tenant.StandardKey(w.TB(), w.Tenant.NewWorkspace(w.TB())))}
			})),
			one("no file id", "", "w", "404", 1, []string{key, slot}, fixed(func(r *cases.Request) { r.Event = r.At("file_id", kit.Marker) })),
			one("unknown key", "", "w", "401 unknown_key", 1, lookUp, func(w *cases.World) (cases.Act, []cases.Beside) {
				a := deletes(w, "delete", as(kit.Marker+"unknown"))
				a.Spare = []string{slot, workspace}
				return a, nil
			}),
			limited,
			paused("the first after an interval", "200", 2, deletion, under(60, 5), after(time.Second)),
			paused("the first within an interval", "200", 2, deletion, under(60, 5), after(0, time.Second, time.Second-1)),
			besides("two deletes", "", "w", func(w *cases.World) []cases.Beside {
				return []cases.Beside{{Act: deletes(w, "other", as(w.Tenant.StandardKey(w.TB(), ""))), Then: "404", Lost: "404 answer_lost", Ends: []string{"404"}}}
			}),
			besides("two deletes of two versions", enabled, "ww", func(w *cases.World) []cases.Beside {
				return []cases.Beside{{Act: deletes(w, "other", as(w.Tenant.StandardKey(w.TB(), ""))), Then: "404", Lost: "404 answer_lost", Ends: []string{"404"}}}
			}),
			besides("upload over the file", "", "w", uploads),
			overVersions,
			besides("revoke key", "", "w", func(w *cases.World) []cases.Beside {
				return []cases.Beside{{Then: "401 disabled", Act: w.Command("revoke", func(ctx context.Context, c cases.Clients) error {
					return c.Registry.DisableKey(ctx, w.Tenant.ID, auth.HashKey(w.Tenant.Management))
				})}}
			}),
			besides("delete workspace", "", "w", func(w *cases.World) []cases.Beside {
				return []cases.Beside{{Then: "404", Act: w.Command("delete workspace", func(ctx context.Context, c cases.Clients) error {
					return c.Registry.DeleteWorkspace(ctx, w.Tenant.ID, w.Tenant.Workspace)
				})}}
			}),
		},
		Overlaps: []cases.Overlap{
			overlap("two deletes", "", "w", 1_000_000, 100_000, 2, false, "other: 404"),
			overlap("two deletes of two versions", enabled, "ww", 1_000_000, 100_000, 2, false),
			overlap("two deletes, versioning suspended", suspended, "w", 1_000_000, 100_000, 2, false),
			overlap("two deletes of one key, a burst of one", "", "w", 60, 1, 2, true, "delete: 429", "other: 429"),
			overlap("three deletes of one key, a burst of two", "", "w", 60, 2, 3, true, "third: 429"),
		},
	}.Play(t)
}

func uploads(w *cases.World) []cases.Beside {
	return []cases.Beside{{
		Ends: []string{"done", files.ErrExists.Error()},
		Act: w.Command("upload", func(ctx context.Context, c cases.Clients) error {
			return c.Files.Upload(ctx, w.Tenant.Workspace, file, strings.NewReader("uploaded"), "text/plain")
		}, files.ErrExists),
	}}
}

// overlap makes deletions at the same time. Of one key, as many pass as the burst allows; the
// others get 429.
func overlap(name, versioning, history string, perMinute, burst, count int, oneKey bool, reaches ...string) cases.Overlap {
	return cases.Overlap{Name: name, Versioning: versioning, Reaches: reaches, Set: func(w *cases.World) (acts []cases.Act, _ func([]cases.Done)) {
		first := storedFile(w, history)
		for _, name := range []string{"delete", "other", "third"}[:count] {
			token := w.Tenant.Management
			if !oneKey {
				token = cases.Prepared(w, func() string { return w.Tenant.StandardKey(w.TB(), "") })
			}
			acts = append(acts, deletes(w, name, as(token), under(perMinute, burst)))
		}
		judge := judgeFile(w, history, first, false)
		return acts, func(done []cases.Done) {
			judge(done)
			passed := len(done) - cases.Count(done, "429")
			if oneKey && passed != min(burst, count) {
				w.Broken("result", "%d deletions pass a burst of %d", passed, burst)
			}
			if deleted := cases.Count(done, "200"); deleted == 0 && versioning == "" {
				w.Broken("result", "no deletion answers 200: %v", fmt.Sprint(done))
			}
		}
	}}
}

// A deletion with little time makes progress until nothing is left. The newest marker goes last.
// The audit line of a failed deletion names the file, and the versions that it removed.
func TestLittleTime(t *testing.T) {
	for history, page := range map[string]int{"wwwwwwwwwwww": 3, "wwwmmmmmmmmm": 3, "wmwmwmwmwmwmwm": 5, "wmwwmwwm": 1} {
		cases.OnModel(t, enabled, page, func(w *cases.World) {
			first, removed := storedFile(w, history), 0.0
			for left := first.Left; ; {
				r, now := w.Short(deletes(w, "delete"), 9), w.File(file)
				audit := r.Shown.(functest.Answer).Audit
				count, _ := audit["versions_removed"].(float64)
				if removed += count; audit["file"] != string(file) || audit["workspace"] != string(w.Tenant.Workspace) {
					w.Broken("line", "%s with the audit line %v", r.Text, audit)
				}
				if now.Visible > 0 {
					w.Broken("stored", "%s: a version can be read: %+v", history, now)
				}
				if r.Text != "500" {
					if now.Left > 0 || now.Siblings != first.Siblings || int(removed) != strings.Count(history, "w") {
						w.Broken("stored", "%s: after %s %+v are left, %v versions are said to be removed", history, r.Text, now, removed)
					}
					return
				}
				if now.Left >= left && left <= first.Left {
					w.Broken("stored", "%s: no progress: %d of %d are left", history, now.Left, left)
					return
				}
				left = now.Left
			}
		})
	}
}
