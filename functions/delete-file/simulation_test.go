package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/infra/test/sim"
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

// TestSimulation runs requests with every fault of every call. It also runs them beside
// each other and beside the operator's acts, in every order of their calls.
func TestSimulation(t *testing.T) {
	sim.Suite{Alone: alone(), Pairs: pairs(), Orders: orders(), Crowds: crowds()}.Play(t)
}

const file = ids.File("file_1")

// stored stores a file, and other files with names that begin like its name. Each "w"
// writes a version, each "m" adds a delete marker.
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
	// Each prepare may change the world and the request.
	type prepare = func(*sim.World, *sim.Delete)
	one := func(name, versioning, history string, roundTrips int, calls []string, d sim.Delete, prepare prepare) sim.Scenario {
		s := scenario(name, versioning, func(w *sim.World) {
			stored(w, history)
			request := d
			if prepare != nil {
				prepare(w, &request)
			}
			w.Delete("A", request)
		})
		s.Calls, s.RoundTrips = calls, roundTrips
		return s
	}
	second := func(w *sim.World, d *sim.Delete) {
		before := *d
		before.File = "file_none"
		w.Deleted(before)
	}
	after := func(pauses ...time.Duration) sim.Delete { return sim.Delete{PerMinute: 60, Burst: 5, Pauses: pauses} }
	frozen := one("frozen for an hour", "", "w", 0, nil, after(time.Hour), nil)
	frozen.Frozen = true
	pages := func(name, history string, page int) sim.Scenario {
		s := one(name, enabled, history, 0, nil, sim.Delete{Time: 9}, nil)
		s.Page = page
		return s
	}
	deletion, lookUp := []string{key, slot, workspace, erase}, []string{key, slot, workspace}
	everyVersion := []string{key, slot, workspace, erase, list, purge, purge, list}
	return []sim.Scenario{
		scenario("responses", "", askResponses), scenario("files", "", askFiles), scenario("rates", "", askRates),
		one("a file", "", "w", 2, deletion, sim.Delete{}, nil),
		one("default workspace", "", "w", 3, []string{key, slot, account, erase}, sim.Delete{Unnamed: true}, nil),
		one("bound key", "", "w", 2, []string{key, slot, erase}, sim.Delete{Unnamed: true}, func(w *sim.World, d *sim.Delete) {
			d.Token = w.StandardKey(w.Tenant.Workspace)
		}),
		one("within the burst", "", "w", 3, append([]string{slot}, deletion...), sim.Delete{PerMinute: 1, Burst: 20}, second),
		one("two versions", enabled, "ww", 6, everyVersion, sim.Delete{}, nil),
		one("hidden by a deletion that stopped", enabled, "wwm", 6, everyVersion, sim.Delete{}, nil),
		one("versioning suspended", suspended, "w", 5, []string{key, slot, workspace, erase, list, purge, list}, sim.Delete{}, nil),
		one("no such file", "", "", 3, append([]string{list}, deletion...), sim.Delete{}, nil),
		one("no such file, versioned", enabled, "", 3, append([]string{list}, deletion...), sim.Delete{}, nil),
		one("another account's workspace", "", "w", 1, lookUp, sim.Delete{Never: true}, func(w *sim.World, d *sim.Delete) {
			d.Workspace = kit.NewTenant(w.TB(), w.Tenant.Registry).Workspace
		}),
		one("unknown workspace", "", "w", 1, lookUp, sim.Delete{Never: true}, func(_ *sim.World, d *sim.Delete) { d.Workspace = ids.New[ids.Workspace]() }),
		one("out of a bound key's reach", "", "w", 1, lookUp, sim.Delete{Never: true}, func(w *sim.World, d *sim.Delete) {
			d.Token = w.StandardKey(w.NewWorkspace("other"))
		}),
		one("no file id", "", "w", 1, []string{key, slot}, sim.Delete{File: kit.Marker, Never: true}, nil),
		one("limit exceeded", "", "w", 1, lookUp, sim.Delete{PerMinute: 1, Burst: 1}, second),
		one("the first after an interval", "", "w", 2, deletion, after(time.Second), nil),
		one("the first within an interval", "", "w", 2, deletion, after(0, time.Second, time.Second-1), nil),
		frozen,
		pages("many versions, little time", "wwwwwwwwwwww", 3),
		pages("many markers, little time", "wwwmmmmmmmmm", 3),
		pages("versions and markers in turn, little time", "wmwmwmwmwmwmwm", 5),
		pages("a marker on a page of its own, little time", "wmwwmwwm", 1),
		scenario("purge", enabled, func(w *sim.World) {
			stored(w, "wmwm")
			w.PurgeWorkspace("purge")
		}),
		one("unknown key", "", "w", 1, lookUp, sim.Delete{}, func(w *sim.World, d *sim.Delete) { d.Token = w.UnknownKey() }),
	}
}

// together makes a scenario of requests for a stored file at the same time. beside makes
// the acts before and beside them.
func together(name, versioning, history string, beside func(*sim.World), requests ...sim.Delete) sim.Scenario {
	return scenario(name, versioning, func(w *sim.World) {
		stored(w, history)
		beside(w)
		for i, d := range requests {
			w.Delete(string(rune('A'+i)), d)
		}
	})
}

// twoKeys makes a scenario of two requests for a stored file with two API keys, and the
// acts beside them.
func twoKeys(name, versioning, history string, beside func(*sim.World)) sim.Scenario {
	return scenario(name, versioning, func(w *sim.World) {
		stored(w, history)
		w.Delete("A", sim.Delete{})
		w.Delete("B", sim.Delete{Token: w.StandardKey("")})
		beside(w)
	})
}

func nothing(*sim.World) {}

func upload(w *sim.World) { w.Upload("upload", file) }

func purgeWorkspace(w *sim.World) { w.PurgeWorkspace("purge workspace") }

func pairs() []sim.Scenario {
	limited := func(burst int64, file ids.File) sim.Delete {
		return sim.Delete{PerMinute: 60, Burst: burst, File: file}
	}
	return []sim.Scenario{
		twoKeys("two deletes", "", "w", nothing).Reaches("A: 404", "B: 404"),
		together("two deletes of one key", "", "w", nothing, limited(1, file), limited(1, "file_none")).Reaches("A: 429", "B: 429"),
		together("two deletes within the burst", "", "w", func(w *sim.World) { w.Deleted(limited(3, "file_none")) },
			limited(3, file), limited(3, "file_none")).Reaches("A: 200", "B: 404"),
		together("upload over the file", "", "w", upload, sim.Delete{}).Reaches("A: 200", "upload: done", "upload: the file exists already"),
		together("revoke key", "", "w", func(w *sim.World) { w.RevokeKey("revoke key", w.Tenant.Management) }, sim.Delete{}).
			Reaches("A: 200", "A: 401 disabled"),
		scenario("delete workspace", "", func(w *sim.World) {
			stored(w, "w")
			bound := w.StandardKey(w.Tenant.Workspace)
			w.Delete("A", sim.Delete{Token: bound, Unnamed: true})
			w.DeleteWorkspace("delete workspace", w.Tenant.Workspace, bound)
		}).Reaches("A: 200", "A: 401 disabled"),
		together("delete named workspace", "", "w", func(w *sim.World) {
			w.DeleteWorkspace("delete workspace", w.Tenant.Workspace)
		}, sim.Delete{}).Reaches("A: 200", "A: 404"),
	}
}

func orders() []sim.Scenario {
	return []sim.Scenario{
		together("purge workspace", "", "w", purgeWorkspace, sim.Delete{}).Reaches("A: 200", "A: 404"),
		together("purge workspace of versions", enabled, "ww", purgeWorkspace, sim.Delete{}).Reaches("A: 200", "A: 404"),
		twoKeys("two deletes and an upload", "", "", upload).Reaches("A: 200", "B: 200", "A: 404"),
	}
}

func crowds() []sim.Scenario {
	limited := sim.Delete{PerMinute: 60, Burst: 2}
	return []sim.Scenario{
		twoKeys("two deletes of two versions", enabled, "ww", nothing).Reaches("A: 200", "B: 404"),
		twoKeys("two deletes, versioning suspended", suspended, "w", nothing).Reaches("A: 200", "B: 404"),
		together("upload over versions", enabled, "ww", upload, sim.Delete{}).Reaches("A: 200", "upload: done"),
		together("three deletes and an upload", "", "w", upload, limited, limited, limited).Reaches("A: 200", "A: 429"),
	}
}

// askResponses compares responses with testdata. Another account's file gets the same
// response as a missing file.
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
	same("404", "not-found", deleteRequest(kit.NewTenant(t, home.Registry).Workspace, file))
	same("404", "not-found", deleteRequest(other, file))
	same("404", "not-found", unnamed.At("file_id", "file_a%2Fb"))
	same("404", "not-found", unnamed.Asking("workspace_id", own, own))
	same("200", "deleted", unnamed)
	same("404", "not-found", unnamed)

	second := unnamed.As(home.StandardKey(t, "")).Limited("1", "1")
	w.Ask("404", second)
	functest.Golden(t, "limited", names, w.Ask("429", second)) // the next one passes a minute later
}

// askFiles deletes files in workspaces of every kind, as every kind of caller.
func askFiles(w *sim.World) {
	home, t := w.Tenant, w.TB()
	other, stranger := w.NewWorkspace("other"), kit.NewTenant(t, home.Registry)
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
	removed("file_a", deleteRequest("", "file_a"))
	w.Ask("404", deleteRequest("", "file_a"), `"aws_calls":5`)
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
	w.Unreadable("access", row, func() {
		w.Ask("500", in(own), "stored workspace "+own)
		w.Ask("404", in(own).As(stranger.Management), "stored workspace "+own)
		w.Ask("404", in(own).As(home.StandardKey(t, other)), "stored workspace "+own)
	})
	account := kit.Key("account#"+string(home.ID), "account")
	w.Unreadable("access", account, func() { w.Ask("500", deleteRequest("", file), "stored account "+string(home.ID)) })
}

// askRates asks under invalid rates, then until a rate is used up and free again.
func askRates(w *sim.World) {
	for _, rate := range [][2]string{{"", "20"}, {"60", ""}, {"many", "20"}, {"60", "20.5"}, {"0", "20"}, {"60", "0"}} {
		w.Ask("500", deleteRequest("", "file_absent").Limited(rate[0], rate[1]), `"error":{"text":`)
	}
	w.Ask("404", deleteRequest("", "file_absent").Limited("1000000", "100000"))
	e := deleteRequest("", "file_absent").As(w.Tenant.StandardKey(w.TB(), "")).Limited("7", "3")
	for range 3 {
		w.Ask("404", e)
	}
	w.Ask("429", e)
	const interval = 8571428572 // nanoseconds, rounded up
	time.Sleep(interval - 1)
	w.Ask("429", e)
	time.Sleep(time.Nanosecond)
	w.Ask("404", e)
	w.Ask("429", e)
}
