package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/sim"
	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/auth"
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

// TestSimulation plays requests with every fault of every call, and beside each
// other and the operator's acts in every order of their calls.
func TestSimulation(t *testing.T) {
	sim.Suite{Alone: alone(), Pairs: pairs(), Orders: orders(), Crowds: crowds()}.Play(t)
}

const file = ids.File("file_1")

// stored is a file, with others beside it whose names begin like it; each "w" writes
// a version, each "m" hides what is there.
func stored(w *sim.World, history string) {
	for i, step := range history {
		w.Put(file, map[rune]string{'w': strings.Repeat("x", 3+i)}[step])
	}
	w.Put("file_10", "sibling")
	w.Put("file_11", "hidden sibling")
	w.Put("file_11", "")
}

func scenario(name, versioning string, set func(*sim.World)) sim.Scenario {
	return sim.Scenario{Name: name, Assemble: assemble, Versioning: versioning, Set: set}
}

const enabled, suspended = "Enabled", "Suspended"

func alone() []sim.Scenario {
	one := func(name, versioning, history string, roundTrips int, calls []string, request func(*sim.World) sim.Delete) sim.Scenario {
		s := scenario(name, versioning, func(w *sim.World) {
			stored(w, history)
			w.Delete("A", request(w))
		})
		s.Calls, s.RoundTrips = calls, roundTrips
		return s
	}
	named := func(*sim.World) sim.Delete { return sim.Delete{} }
	second := func(perMinute, burst int64) func(*sim.World) sim.Delete {
		return func(w *sim.World) sim.Delete {
			w.Deleted(sim.Delete{File: "file_none", PerMinute: perMinute, Burst: burst})
			return sim.Delete{PerMinute: perMinute, Burst: burst}
		}
	}
	with := func(s sim.Scenario, change func(*sim.Scenario)) sim.Scenario {
		s.Calls = nil
		change(&s)
		return s
	}
	pages := func(name, history string, page int) sim.Scenario {
		return with(one(name, enabled, history, 0, nil, func(*sim.World) sim.Delete { return sim.Delete{Time: 9} }), func(s *sim.Scenario) { s.Page = page })
	}
	deletion := []string{key, slot, workspace, erase}
	everyVersion := []string{key, slot, workspace, erase, list, purge, purge, list}
	return []sim.Scenario{
		scenario("responses", "", askResponses), scenario("files", "", askFiles), scenario("rates", "", askRates),
		one("a file", "", "w", 2, deletion, named),
		one("default workspace", "", "w", 3, []string{key, slot, account, erase}, func(*sim.World) sim.Delete { return sim.Delete{Unnamed: true} }),
		one("bound key", "", "w", 2, []string{key, slot, erase}, func(w *sim.World) sim.Delete {
			return sim.Delete{Unnamed: true, Token: w.StandardKey(w.Tenant.Workspace)}
		}),
		one("within the burst", "", "w", 3, append([]string{slot}, deletion...), second(1, 20)),
		one("two versions", enabled, "ww", 6, everyVersion, named),
		one("hidden by a deletion that stopped", enabled, "wwm", 6, everyVersion, named),
		one("versioning suspended", suspended, "w", 5, []string{key, slot, workspace, erase, list, purge, list}, named),
		one("no such file", "", "", 3, append([]string{list}, deletion...), named),
		one("no such file, versioned", enabled, "", 3, append([]string{list}, deletion...), named),
		one("another account's workspace", "", "w", 1, []string{key, slot, workspace}, func(w *sim.World) sim.Delete {
			return sim.Delete{Workspace: testkit.NewTenant(w.TB(), w.Tenant.Registry).Workspace, Never: true}
		}),
		one("unknown workspace", "", "w", 1, []string{key, slot, workspace}, func(*sim.World) sim.Delete {
			return sim.Delete{Workspace: ids.New[ids.Workspace](), Never: true}
		}),
		one("out of a bound key's reach", "", "w", 1, []string{key, slot, workspace}, func(w *sim.World) sim.Delete {
			return sim.Delete{Token: w.StandardKey(w.NewWorkspace("other")), Never: true}
		}),
		one("no file id", "", "w", 1, []string{key, slot}, func(*sim.World) sim.Delete { return sim.Delete{File: testkit.Marker, Never: true} }),
		one("limit exceeded", "", "w", 1, []string{key, slot, workspace}, second(1, 1)),
		one("the first after an interval", "", "w", 2, deletion, func(*sim.World) sim.Delete {
			return sim.Delete{PerMinute: 60, Burst: 5, Pauses: []time.Duration{time.Second}}
		}),
		one("the first within an interval", "", "w", 2, deletion, func(*sim.World) sim.Delete {
			return sim.Delete{PerMinute: 60, Burst: 5, Pauses: []time.Duration{0, time.Second, time.Second - 1}}
		}),
		with(one("frozen for an hour", "", "w", 0, nil, func(*sim.World) sim.Delete {
			return sim.Delete{PerMinute: 60, Burst: 5, Pauses: []time.Duration{time.Hour}}
		}), func(s *sim.Scenario) { s.Frozen = true }),
		with(one("clock behind", enabled, "w", 0, nil, named), func(s *sim.Scenario) { s.Clock = 10 * time.Minute }),
		with(one("clock ahead", enabled, "w", 0, nil, named), func(s *sim.Scenario) { s.Clock = -10 * time.Minute }),
		pages("many versions, little time", "wwwwwwwwwwww", 3),
		pages("many markers, little time", "wwwmmmmmmmmm", 3),
		pages("versions and markers in turn, little time", "wmwmwmwmwmwmwm", 5),
		pages("a marker on a page of its own, little time", "wmwwmwwm", 1),
		one("unknown key", "", "w", 1, []string{key, slot, workspace}, func(w *sim.World) sim.Delete { return sim.Delete{Token: w.UnknownKey()} }),
	}
}

func pairs() []sim.Scenario {
	two := func(name, versioning, history string, d sim.Delete) sim.Scenario {
		return scenario(name, versioning, func(w *sim.World) {
			stored(w, history)
			w.Delete("A", d)
			d.Token = w.StandardKey("")
			w.Delete("B", d)
			d.Token = ""
		})
	}
	return []sim.Scenario{
		two("two deletes", "", "w", sim.Delete{}),
		scenario("two deletes of one key", "", func(w *sim.World) {
			stored(w, "w")
			w.Delete("A", sim.Delete{PerMinute: 60, Burst: 1})
			w.Delete("B", sim.Delete{PerMinute: 60, Burst: 1, File: "file_none"})
		}),
		scenario("two deletes within the burst", "", func(w *sim.World) {
			stored(w, "w")
			w.Deleted(sim.Delete{File: "file_none", PerMinute: 60, Burst: 3})
			w.Delete("A", sim.Delete{PerMinute: 60, Burst: 3})
			w.Delete("B", sim.Delete{PerMinute: 60, Burst: 3, File: "file_none"})
		}),
		scenario("upload over the file", "", func(w *sim.World) {
			stored(w, "w")
			w.Delete("A", sim.Delete{})
			w.Upload("upload", file)
		}),
		scenario("revoke key", "", func(w *sim.World) {
			stored(w, "w")
			w.Delete("A", sim.Delete{})
			w.RevokeKey("revoke key", w.Tenant.Management)
		}),
		scenario("delete workspace", "", func(w *sim.World) {
			stored(w, "w")
			bound := w.StandardKey(w.Tenant.Workspace)
			w.Delete("A", sim.Delete{Token: bound, Unnamed: true})
			w.DeleteWorkspace("delete workspace", w.Tenant.Workspace, bound)
		}),
		scenario("delete named workspace", "", func(w *sim.World) {
			stored(w, "w")
			w.Delete("A", sim.Delete{})
			w.DeleteWorkspace("delete workspace", w.Tenant.Workspace)
		}),
	}
}

func orders() []sim.Scenario {
	return []sim.Scenario{
		scenario("purge workspace", "", func(w *sim.World) {
			stored(w, "w")
			w.Delete("A", sim.Delete{})
			w.PurgeWorkspace("purge workspace")
		}),
		scenario("purge workspace of versions", enabled, func(w *sim.World) {
			stored(w, "ww")
			w.Delete("A", sim.Delete{})
			w.PurgeWorkspace("purge workspace")
		}),
		scenario("two deletes and an upload", "", func(w *sim.World) {
			stored(w, "")
			w.Delete("A", sim.Delete{})
			w.Delete("B", sim.Delete{Token: w.StandardKey("")})
			w.Upload("upload", file)
		}),
	}
}

func crowds() []sim.Scenario {
	two := func(name, versioning, history string) sim.Scenario {
		return scenario(name, versioning, func(w *sim.World) {
			stored(w, history)
			w.Delete("A", sim.Delete{})
			w.Delete("B", sim.Delete{Token: w.StandardKey("")})
		})
	}
	return []sim.Scenario{
		two("two deletes of two versions", enabled, "ww"),
		two("two deletes, versioning suspended", suspended, "w"),
		scenario("upload over versions", enabled, func(w *sim.World) {
			stored(w, "ww")
			w.Delete("A", sim.Delete{})
			w.Upload("upload", file)
		}),
		scenario("three deletes and an upload", "", func(w *sim.World) {
			stored(w, "w")
			w.Delete("A", sim.Delete{PerMinute: 60, Burst: 2})
			w.Delete("B", sim.Delete{PerMinute: 60, Burst: 2})
			w.Delete("C", sim.Delete{PerMinute: 60, Burst: 2})
			w.Upload("upload", file)
		}),
	}
}

// askResponses compares responses with testdata. To the caller another account's file is
// one that does not exist.
func askResponses(w *sim.World) {
	home, t := w.Tenant, w.TB()
	file, other := ids.NewFile(), home.NewWorkspace(t)
	names := map[string]string{"FILE": string(file)}
	// Each request has its own key, so its limiter is idle.
	same := func(want, response string, e functest.Event) {
		functest.Golden(t, response, names, w.Ask(want, e.As(home.StandardKey(t, "")).Limited("60", "20")))
	}
	unnamed, own := deleteRequest("", file), string(home.Workspace)
	w.Put(file, "content")
	same("404", "not-found", deleteRequest(testkit.NewTenant(t, home.Registry).Workspace, file))
	same("404", "not-found", deleteRequest(other, file))
	same("404", "not-found", unnamed.At("file_id", "file_a%2Fb"))
	same("404", "not-found", unnamed.Asking("workspace_id", own, own))
	same("200", "deleted", unnamed)
	same("404", "not-found", unnamed)

	second := unnamed.As(home.StandardKey(t, "")).Limited("1", "1")
	w.Ask("404", second)
	functest.Golden(t, "limited", names, w.Ask("429", second)) // the next one passes a minute later
}

// askFiles deletes files of every name, in workspaces of every kind, as every caller.
func askFiles(w *sim.World) {
	home, t := w.Tenant, w.TB()
	other, stranger := w.NewWorkspace("other"), testkit.NewTenant(t, home.Registry)
	removed := func(id ids.File, e functest.Event) {
		w.Put(id, "content")
		if a := w.Ask("200", e); a.Audit["file"] != string(id) || a.Audit["workspace"] != string(home.Workspace) || a.Audit["versions_removed"] != 1.0 {
			t.Errorf("%s: %v", id, a.Audit)
		}
	}
	kept := func(id ids.File, e functest.Event) {
		w.Put(id, "content")
		w.Ask("404", e)
		if !w.Exists(id) {
			t.Errorf("%q is deleted", id)
		}
	}
	for _, id := range []ids.File{"file_a", "file_09azAZ_-", ids.File("file_" + strings.Repeat("x", 200))} {
		removed(id, deleteRequest("", id))
		w.Ask("404", deleteRequest("", id), `"aws_calls":5`)
	}
	for _, id := range []ids.File{"file_", "fil_a", "File_a", "xfile_a", "file_a/b", "file_a:", "file_a@", "file_a[", "file_a`", "file_a{", "file_a.", "file_é", "file_a%2e", ids.File("file_" + strings.Repeat("x", 201))} {
		kept(id, deleteRequest("", id))
	}
	in := func(workspaces ...string) functest.Event {
		return deleteRequest("", file).Asking("workspace_id", workspaces...)
	}
	own := string(home.Workspace)
	removed(file, in(own))
	removed(file, in(strings.ToUpper(own)))
	removed(file, in(own).As(home.StandardKey(t, home.Workspace)))
	removed(file, deleteRequest("", file).As(home.StandardKey(t, home.Workspace)))
	removed(file, deleteRequest("", file).As(home.StandardKey(t, "")))
	for _, named := range [][]string{{""}, {own, own}, {own[1:]}, {"{" + own[1:35] + "}"}, {string(other)}, {string(stranger.Workspace)}, {string(home.DeletedWorkspace(t))}, {string(ids.New[ids.Workspace]())}} {
		kept(file, in(named...))
	}
	kept(file, in(own).As(stranger.Management))
	kept(file, deleteRequest("", file).As(stranger.Management))
	kept(file, in(own).As(home.StandardKey(t, other)))
	kept(file, deleteRequest("", file).As(home.StandardKey(t, other)))
	row := testkit.Key("workspace#"+own, "workspace")
	for _, damage := range []string{"v=2", "v", "next=x", "name=NULL", "deleted_at=x"} {
		w.Damaged("access", row, damage, func() {
			w.Ask("500", in(own), "stored workspace "+own)
			w.Ask("404", in(own).As(stranger.Management), "stored workspace "+own)
			w.Ask("404", in(own).As(home.StandardKey(t, other)), "stored workspace "+own)
		})
	}
	w.Damaged("access", row, "account", func() { w.Ask("404", in(own), "stored workspace "+own) })
	for _, damage := range []string{"v=2", "name=NULL"} {
		w.Damaged("access", testkit.Key("account#"+string(home.ID), "account"), damage, func() { w.Ask("500", deleteRequest("", file), "stored account "+string(home.ID)) })
	}
	w.Damaged("access", testkit.Key("account#"+string(home.ID), "account"), "default_workspace", func() { kept(file, deleteRequest("", file)) })
	absent := deleteRequest("", "file_absent")
	w.AskCallers("404", absent)
}

// askRates asks under rates of every kind, until they are used up and free again.
func askRates(w *sim.World) {
	t := w.TB()
	for _, rate := range [][2]string{{"", "20"}, {"60", ""}, {"many", "20"}, {"60", "20.5"}, {"0", "20"}, {"60", "0"}, {"1000001", "1"}, {"1", "100001"}, {"9223372036854775808", "1"}} {
		w.Ask("500", deleteRequest("", "file_absent").Limited(rate[0], rate[1]), `"error":{"text":`)
	}
	w.Ask("404", deleteRequest("", "file_absent").Limited("1000000", "100000"), "")
	for _, c := range []struct {
		perMinute, burst string
		interval         time.Duration
		passes           int
	}{{"60", "20", time.Second, 20}, {"7", "3", 8571428572, 3}, {"1", "1", time.Minute, 1}} {
		token := w.Tenant.StandardKey(t, "")
		e := deleteRequest("", "file_absent").As(token).Limited(c.perMinute, c.burst)
		for range c.passes {
			w.Ask("404", e)
		}
		w.Ask("429", e)
		w.Wait(c.interval - 1)
		w.Ask("429", e)
		w.Wait(1)
		w.Ask("404", e)
		w.Ask("429", e)
		w.Damaged("control", testkit.Key("limit#delete-file#"+string(auth.HashKey(token))), "tat=x", func() {
			w.Ask("500", e, "limiter item")
		})
		w.ForgetRate(token)
		w.Ask("404", e)
	}
}
