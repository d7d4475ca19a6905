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
func storedFile(env *cases.Environment, history string) kit.Objects {
	return cases.Prepared(env, func() kit.Objects { return storeFile(env, history) })
}

func storeFile(env *cases.Environment, history string) kit.Objects {
	t, bucket, key := env.TB(), env.Bucket(), func(f ids.File) string { return files.Key(env.Tenant.Workspace, f) }
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
	return env.File(file)
}

// change changes a request.
type change = func(*cases.Request)

// deletes makes the operation of a request, and changes it.
func deletes(env *cases.Environment, name string, changes ...change) cases.Operation {
	r := cases.Request{Assemble: assemble, Event: deleteRequest(env.Tenant.Workspace, file).As(env.Tenant.Management)}
	for _, c := range changes {
		c(&r)
	}
	op := env.Request(name, r)
	op.FaultOutcomes = func(c cases.Call, f *cases.Fault, always bool, alone string) []string {
		isRepeated := f.Recovers && !always && !f.Usable && !f.Refused && c.Kind == erase
		switch {
		case c.Kind == slot && f.OwnThrottle && !strings.HasPrefix(alone, "401"):
			return []string{"429"}
		case isRepeated && (alone == "404" || env.Versioning == "" && f.Applied):
			return []string{"404 answer_lost"}
		}
		return nil
	}
	return op
}

func as(token string) change {
	return func(r *cases.Request) { r.Event = r.As(token) }
}

func under(perMinute, burst int) change {
	return func(r *cases.Request) { r.Event = r.Limited(strconv.Itoa(perMinute), strconv.Itoa(burst)) }
}

// after makes requests of the same instance for another file before each pause.
func after(pauses ...time.Duration) change {
	return func(r *cases.Request) { r.Earlier, r.Pauses = r.At("file_id", "file_none"), pauses }
}

// judgeFile judges the results of deletions, and what is left of the file. never means that no
// request may reach it.
func judgeFile(env *cases.Environment, history string, first kit.Objects, never bool) func([]cases.Outcome) {
	versions := strings.Count(history, "w")
	return func(outcomes []cases.Outcome) {
		now, deleted, others := env.File(file), 0, false
		for _, o := range outcomes {
			others = others || !o.Again && o.Fault == nil && o.Operation != outcomes[0].Operation
		}
		for _, o := range outcomes {
			answer, isRequest := o.Result.Shown.(functest.Answer)
			if !isRequest {
				continue
			}
			limited := answer.Status == 200 || answer.Status == 404 || answer.Status == 429
			for _, name := range []string{"RateLimit", "RateLimit-Policy", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
				if (answer.Header[name] != "") != limited {
					env.Broken("result", "%d with %s %q", answer.Status, name, answer.Header[name])
				}
			}
			if wait := answer.Header["Retry-After"]; (wait != "") != (answer.Status == 429) || strings.HasPrefix(wait, "0") {
				env.Broken("result", "%d with Retry-After %q", answer.Status, wait)
			}
			removed, _ := answer.Audit["versions_removed"].(float64)
			if int(removed) > versions && !slices.ContainsFunc(outcomes, func(o cases.Outcome) bool { return o.Operation == "upload" }) {
				env.Broken("line", "versions_removed is %v of %d", removed, versions)
			}
			if answer.Status != 200 {
				continue
			}
			deleted++
			if answer.Body != `{"id":"file_1","type":"file_deleted"}` || answer.Audit["file"] != string(file) || answer.Audit["workspace"] != string(env.Tenant.Workspace) {
				env.Broken("line", "200 %s with the audit line %v", answer.Body, answer.Audit)
			}
			if outcomes[0].Fault == nil && !o.Again && !others && env.Versioning != suspended && int(removed) != versions {
				env.Broken("line", "versions_removed is %v of %d", removed, versions)
			}
		}
		unreachable := slices.ContainsFunc(outcomes, func(o cases.Outcome) bool { return o.Operation == "delete workspace" })
		uploaded := slices.ContainsFunc(outcomes, func(o cases.Outcome) bool { return o.Operation == "upload" && o.Result.Text == "done" })
		last := outcomes[len(outcomes)-1].Result.Text
		switch {
		case deleted > 0 && now.Left > 0 && !uploaded, never && now != first, strings.HasPrefix(last, "404") && now.Left > 0 && !never && !uploaded && !unreachable:
			env.Broken("stored", "after %s %d versions and markers are left of %d", last, now.Left, first.Left)
		case now.Visible != 0 && now.Visible != first.Visible && !uploaded:
			env.Broken("stored", "an older version of the file can be read: %d bytes", now.Visible)
		case now.Siblings != first.Siblings:
			env.Broken("stored", "%d versions of other files are left of %d", now.Siblings, first.Siblings)
		case env.Versioning == "" && deleted > 1 && !uploaded:
			env.Broken("result", "%d deletions of one file answer 200", deleted)
		}
	}
}

func TestCases(t *testing.T) {
	one := func(name, versioning, history, want string, rounds int, calls []string, set func(*cases.Environment) cases.Operation) cases.Case {
		return cases.Case{Name: name, Versioning: versioning, SetUp: func(env *cases.Environment) cases.Scenario {
			first := storedFile(env, history)
			op := set(env)
			op.Want, op.Calls, op.Rounds = want, calls, rounds
			return cases.Scenario{Operation: op, Judge: judgeFile(env, history, first, want != "" && want != "200")}
		}}
	}
	with := func(changes ...change) func(*cases.Environment) cases.Operation {
		return func(env *cases.Environment) cases.Operation { return deletes(env, "delete", changes...) }
	}
	unnamed := func(r *cases.Request) {
		r.Event = functest.NewEvent(r.Method, r.Resource).At("file_id", string(file)).With("Authorization", r.Header["Authorization"]...)
	}
	elsewhere := func(id ids.Workspace) change {
		return func(r *cases.Request) { r.Event = r.Asking("workspace_id", string(id)) }
	}
	// paused are cases whose earlier requests need exact pauses.
	paused := func(name, want string, rounds int, calls []string, changes ...change) cases.Case {
		c := one(name, "", "w", want, rounds, calls, with(changes...))
		c.SkipEngines = "the pause before it must be exact"
		return c
	}
	concurrently := func(name, versioning, history string, other func(*cases.Environment) cases.Concurrent) cases.Case {
		c := one(name, versioning, history, "", 0, nil, with())
		alone := c.SetUp
		c.SetUp = func(env *cases.Environment) cases.Scenario {
			s := alone(env)
			s.Operation.ConcurrentOnly, s.Concurrent = true, []cases.Concurrent{other(env)}
			return s
		}
		return c
	}
	other := func(env *cases.Environment) cases.Concurrent {
		op := deletes(env, "other", as(env.Tenant.StandardKey(env.TB(), "")))
		return cases.Concurrent{Operation: op, AfterConcurrent: "404", AfterLostAnswer: "404 answer_lost", OwnOutcomes: []string{"404"}}
	}
	overVersions := concurrently("upload over versions", enabled, "ww", upload)
	overVersions.SkipEngines = "versitygw refuses a conditional upload over a delete marker; S3 takes it"
	deletion, lookUp := []string{key, slot, workspace, erase}, []string{key, slot, workspace}
	everyVersion := []string{key, slot, workspace, erase, list, purge, purge, list}
	limited := one("limit exceeded", "", "w", "429", 1, lookUp, func(env *cases.Environment) cases.Operation {
		op := deletes(env, "delete", under(1, 1), after(0))
		op.OptionalCalls = []string{workspace}
		return op
	})
	cases.Suite{
		Cases: []cases.Case{
			one("a file", "", "w", "200", 2, deletion, with()),
			one("default workspace", "", "w", "200", 3, []string{key, slot, account, erase}, with(unnamed)),
			one("bound key", "", "w", "200", 2, []string{key, slot, erase}, func(env *cases.Environment) cases.Operation {
				return deletes(env, "delete", as(env.Tenant.StandardKey(env.TB(), env.Tenant.Workspace)), unnamed)
			}),
			paused("within the burst", "200", 2, deletion, under(1, 20), after(0)),
			one("two versions", enabled, "ww", "200", 6, everyVersion, with()),
			one("hidden by a deletion that stopped", enabled, "wwm", "200", 6, everyVersion, with()),
			one("versioning suspended", suspended, "w", "200", 5, []string{key, slot, workspace, erase, list, purge, list}, with()),
			one("no such file", "", "", "404", 3, append([]string{list}, deletion...), with()),
			one("no such file, versioned", enabled, "", "404", 3, append([]string{list}, deletion...), with()),
			one("another account's workspace", "", "w", "404", 1, lookUp, func(env *cases.Environment) cases.Operation {
				return deletes(env, "delete", elsewhere(env.Stranger().Workspace))
			}),
			one("unknown workspace", "", "w", "404", 1, lookUp, with(elsewhere(ids.New[ids.Workspace]()))),
			one("out of a bound key's reach", "", "w", "404", 1, lookUp, func(env *cases.Environment) cases.Operation {
				return deletes(env, "delete", as(env.Tenant.StandardKey(env.TB(), env.Tenant.NewWorkspace(env.TB()))))
			}),
			one("no file id", "", "w", "404", 1, []string{key, slot}, with(func(r *cases.Request) { r.Event = r.At("file_id", kit.Marker) })),
			one("unknown key", "", "w", "401 unknown_key", 1, lookUp, func(env *cases.Environment) cases.Operation {
				op := deletes(env, "delete", as(kit.Marker+"unknown"))
				op.OptionalCalls = []string{slot, workspace}
				return op
			}),
			limited,
			paused("the first after an interval", "200", 2, deletion, under(60, 5), after(time.Second)),
			paused("the first within an interval", "200", 2, deletion, under(60, 5), after(0, time.Second, time.Second-1)),
			concurrently("two deletes", "", "w", other),
			concurrently("two deletes of two versions", enabled, "ww", other),
			concurrently("upload over the file", "", "w", upload),
			overVersions,
			concurrently("revoke key", "", "w", func(env *cases.Environment) cases.Concurrent {
				return cases.Concurrent{AfterConcurrent: "401 disabled", Operation: env.Command("revoke", func(ctx context.Context, c cases.Clients) error {
					return c.Registry.DisableKey(ctx, env.Tenant.ID, auth.HashKey(env.Tenant.Management))
				})}
			}),
			concurrently("delete workspace", "", "w", func(env *cases.Environment) cases.Concurrent {
				return cases.Concurrent{AfterConcurrent: "404", Operation: env.Command("delete workspace", func(ctx context.Context, c cases.Clients) error {
					return c.Registry.DeleteWorkspace(ctx, env.Tenant.ID, env.Tenant.Workspace)
				})}
			}),
		},
		Overlaps: []cases.Overlap{
			overlap("two deletes", "", "w", 1_000_000, 100_000, 2, false, "other: 404"),
			overlap("two deletes of two versions", enabled, "ww", 1_000_000, 100_000, 2, false),
			overlap("two deletes, versioning suspended", suspended, "w", 1_000_000, 100_000, 2, false),
			overlap("two deletes of one key, a burst of one", "", "w", 60, 1, 2, true, "delete: 429", "other: 429"),
			overlap("three deletes of one key, a burst of two", "", "w", 60, 2, 3, true, "third: 429"),
		},
	}.Run(t)
}

func upload(env *cases.Environment) cases.Concurrent {
	return cases.Concurrent{
		OwnOutcomes: []string{"done", files.ErrExists.Error()},
		Operation: env.Command("upload", func(ctx context.Context, c cases.Clients) error {
			return c.Files.Upload(ctx, env.Tenant.Workspace, file, strings.NewReader("uploaded"), "text/plain")
		}, files.ErrExists),
	}
}

// overlap makes deletions at the same time. Of one key, as many pass as the burst allows; the
// others get 429.
func overlap(name, versioning, history string, perMinute, burst, count int, oneKey bool, reaches ...string) cases.Overlap {
	return cases.Overlap{Name: name, Versioning: versioning, Reaches: reaches, SetUp: func(env *cases.Environment) (operations []cases.Operation, _ func([]cases.Outcome)) {
		first := storedFile(env, history)
		for _, name := range []string{"delete", "other", "third"}[:count] {
			token := env.Tenant.Management
			if !oneKey {
				token = cases.Prepared(env, func() string { return env.Tenant.StandardKey(env.TB(), "") })
			}
			operations = append(operations, deletes(env, name, as(token), under(perMinute, burst)))
		}
		judge := judgeFile(env, history, first, false)
		return operations, func(outcomes []cases.Outcome) {
			judge(outcomes)
			passed := len(outcomes) - cases.Count(outcomes, "429")
			if oneKey && passed != min(burst, count) {
				env.Broken("result", "%d deletions pass a burst of %d", passed, burst)
			}
			if deleted := cases.Count(outcomes, "200"); deleted == 0 && versioning == "" {
				env.Broken("result", "no deletion answers 200: %v", fmt.Sprint(outcomes))
			}
		}
	}}
}

// A deletion with little time makes progress until nothing is left. The newest marker goes last.
// The audit line of a failed deletion names the file, and the versions that it removed.
func TestLittleTime(t *testing.T) {
	for history, page := range map[string]int{"wwwwwwwwwwww": 3, "wwwmmmmmmmmm": 3, "wmwmwmwmwmwmwm": 5, "wmwwmwwm": 1} {
		cases.OnModel(t, enabled, page, func(env *cases.Environment) {
			first, removed := storedFile(env, history), 0.0
			for left := first.Left; ; {
				r, now := env.Short(deletes(env, "delete"), 9), env.File(file)
				audit := r.Shown.(functest.Answer).Audit
				count, _ := audit["versions_removed"].(float64)
				if removed += count; audit["file"] != string(file) || audit["workspace"] != string(env.Tenant.Workspace) {
					env.Broken("line", "%s with the audit line %v", r.Text, audit)
				}
				if now.Visible > 0 {
					env.Broken("stored", "%s: a version can be read: %+v", history, now)
				}
				if r.Text != "500" {
					if now.Left > 0 || now.Siblings != first.Siblings || int(removed) != strings.Count(history, "w") {
						env.Broken("stored", "%s: after %s %+v are left, %v versions are said to be removed", history, r.Text, now, removed)
					}
					return
				}
				if now.Left >= left && left <= first.Left {
					env.Broken("stored", "%s: no progress: %d of %d are left", history, now.Left, left)
					return
				}
				left = now.Left
			}
		})
	}
}
