package main

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/infra/test/sim"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// The calls of the function.
const (
	key, idem, account = "GetItem key#", "GetItem idem#", "GetItem account#"
	position, dataKey  = "UpdateItem workspace#", "GenerateDataKey"
	hashes             = "BatchGetItem key#"
	workspace, count   = "GetItem workspace#", "Query workspace#"
	put, both          = "PutItem workspace#", "TransactWriteItems workspace#+idem#"
)

// TestSimulation runs requests with every fault of every call. It also runs them beside
// each other and beside the operator's acts, in every order of their calls.
func TestSimulation(t *testing.T) {
	sim.Suite{Alone: alone(), Pairs: pairs(), Orders: orders(), Crowds: crowds()}.Play(t)
}

func scenario(name string, set func(*sim.World)) sim.Scenario {
	return sim.Scenario{Name: name, Assemble: assemble, Set: set}
}

var (
	// named is a request under an idempotency key.
	named = sim.Create{Idempotency: "once"}
	// other is another request under the same idempotency key.
	other = sim.Create{Idempotency: "once", Changed: map[string]any{"disabled": true}}
)

// full is how many credentials a workspace may hold.
const full = 100

func alone() []sim.Scenario {
	// Each prepare may change the world and the request.
	type prepare = func(*sim.World, *sim.Create)
	one := func(name string, roundTrips int, calls []string, c sim.Create, prepare prepare) sim.Scenario {
		s := scenario(name, func(w *sim.World) {
			request := c
			if prepare != nil {
				prepare(w, &request)
			}
			w.Create("A", request)
		})
		s.Calls, s.RoundTrips = calls, roundTrips
		return s
	}
	earlier := func(w *sim.World, _ *sim.Create) { w.Created("earlier", named) }
	withoutWorkspace := func(w *sim.World, _ *sim.Create) { w.DeletedWorkspace(w.Tenant.Workspace) }
	unnamed, invalid := sim.Create{Unnamed: true}, sim.Create{Never: http.StatusBadRequest}
	frozen := one("frozen for an hour", 0, nil, unnamed, nil)
	frozen.Frozen = true
	hash := func(token string) string { return string(auth.HashKey(token)) }
	return []sim.Scenario{
		scenario("responses", askResponses), scenario("bodies", askBodies), scenario("headers", askHeaders),
		scenario("stored rows", askStored), scenario("room", askForRoom),
		one("default workspace", 4, []string{key, account, position, dataKey, put}, unnamed, nil),
		one("named workspace", 3, []string{key, position, dataKey, put}, sim.Create{}, nil),
		one("everything", 3, []string{key, idem, position, dataKey, hashes, both}, named, func(w *sim.World, c *sim.Create) {
			own := hash(w.Tenant.Management)
			c.Hashes = []string{own, hash(w.StandardKey(w.Tenant.Workspace)), own}
		}),
		one("replay", 1, []string{key, idem}, named, earlier),
		one("replay without a workspace", 1, []string{key, idem}, named, func(w *sim.World, c *sim.Create) {
			earlier(w, c)
			withoutWorkspace(w, c)
		}),
		one("record expired", 3, []string{key, idem, position, dataKey, both}, named, func(w *sim.World, c *sim.Create) {
			earlier(w, c)
			w.Expire("once")
		}),
		one("another request", 1, []string{key, idem}, other, earlier),
		one("room after many deletions", 4, []string{key, position, count, dataKey, put}, sim.Create{}, func(w *sim.World, _ *sim.Create) { w.Fill(60, 90) }),
		one("full workspace", 3, []string{key, position, count, dataKey}, sim.Create{}, func(w *sim.World, _ *sim.Create) { w.Fill(full, 0) }),
		one("full workspace, idempotency key", 4, []string{key, idem, position, count, dataKey, idem}, named, func(w *sim.World, _ *sim.Create) { w.Fill(full, 0) }),
		one("room by the parameter", 3, []string{key, position, dataKey, put}, sim.Create{Most: 7}, func(w *sim.World, _ *sim.Create) { w.Fill(6, 0) }),
		one("unknown member", 1, []string{key}, sim.Create{Unnamed: true, Changed: map[string]any{kit.Marker + "models": "x"}, Never: http.StatusBadRequest}, nil),
		one("unknown API key in the list", 3, []string{key, account, position, dataKey, hashes}, unnamed, func(w *sim.World, c *sim.Create) {
			c.Hashes = []string{hash(w.Tenant.Management), w.UnknownHash()}
		}),
		one("another account's API key in the list", 3, []string{key, account, position, dataKey, hashes}, sim.Create{Unnamed: true, Never: http.StatusBadRequest}, func(w *sim.World, c *sim.Create) {
			c.Hashes = []string{hash(stranger(w).Management)}
		}),
		one("another account's workspace", 3, []string{key, position, workspace, dataKey}, invalid, func(w *sim.World, c *sim.Create) {
			c.Workspace = stranger(w).Workspace
		}),
		one("unknown workspace", 3, []string{key, position, workspace, dataKey}, invalid, func(_ *sim.World, c *sim.Create) {
			c.Workspace = ids.New[ids.Workspace]()
		}),
		one("deleted workspace", 4, []string{key, idem, position, workspace, dataKey, idem}, named, withoutWorkspace),
		one("no default workspace", 3, []string{key, account, hashes}, unnamed, func(w *sim.World, c *sim.Create) {
			withoutWorkspace(w, c)
			c.Hashes = []string{w.UnknownHash()}
		}),
		one("standard key", 1, []string{key, idem}, sim.Create{Idempotency: "once", Never: http.StatusForbidden}, func(w *sim.World, c *sim.Create) {
			c.Token = w.StandardKey("")
		}),
		scenario("purge", func(w *sim.World) {
			w.Credential("old")
			w.PurgeWorkspace("purge")
		}),
		one("unknown key", 1, []string{key, idem}, named, func(w *sim.World, c *sim.Create) { c.Token = w.UnknownKey() }),
		frozen,
	}
}

// together makes a scenario of requests at the same time. beside makes the acts before and
// beside them.
func together(name string, beside func(*sim.World), requests ...sim.Create) sim.Scenario {
	return scenario(name, func(w *sim.World) {
		beside(w)
		for i, c := range requests {
			w.Create(string(rune('A'+i)), c)
		}
	})
}

func nothing(*sim.World) {}

func deletion(w *sim.World) { w.DeleteWorkspace("delete workspace", w.Tenant.Workspace) }

func revocation(w *sim.World) { w.RevokeKey("revoke key", w.Tenant.Management) }

func pairs() []sim.Scenario {
	filled := func(stored, deleted int) func(*sim.World) { return func(w *sim.World) { w.Fill(stored, deleted) } }
	return []sim.Scenario{
		together("the same request twice", nothing, named, named).Reaches("A: 201 replayed", "B: 201 replayed"),
		together("two requests under one idempotency key", nothing, named, other).Reaches("A: 400", "B: 400"),
		together("two requests", nothing, sim.Create{}, sim.Create{}).Reaches("A: 201", "B: 201"),
		together("two requests, room for one", filled(full-1, 0), sim.Create{}, sim.Create{}).
			Reaches("A: 400 /workspace_id", "B: 400 /workspace_id", sim.BoundPassed),
		together("two requests, room for one after a deletion", filled(full-1, 1), sim.Create{}, sim.Create{}).
			Reaches("A: 400 /workspace_id", "B: 400 /workspace_id", sim.BoundPassed),
		together("the same request twice, room for one", filled(full-1, 0), named, named).Reaches("A: 201 replayed", "B: 201 replayed"),
		scenario("a request that is refused and another, room for one", func(w *sim.World) {
			w.Fill(full-1, 0)
			w.Create("A", sim.Create{})
			w.Create("B", sim.Create{Hashes: []string{w.UnknownHash()}})
		}).Reaches("A: 201", "B: 400 /allowed_api_key_hashes/0", "B: 400 /allowed_api_key_hashes/0 /workspace_id"),
		together("two requests, record expired", func(w *sim.World) {
			w.Created("earlier", named)
			w.Expire("once")
		}, named, named).Reaches("A: 201 replayed", "B: 201 replayed"),
		together("delete a credential of a full workspace", func(w *sim.World) {
			w.Fill(full-1, 0)
			w.DeleteCredential("delete credential", w.Credential("old"))
		}, sim.Create{}).Reaches("A: 201", "A: 400 /workspace_id"),
		together("delete workspace", deletion, sim.Create{}).Reaches("A: 201", "A: 400 /workspace_id"),
		together("delete default workspace", deletion, sim.Create{Unnamed: true}).Reaches("A: 201", "A: 400 /workspace_id"),
		together("delete workspace, idempotency key", deletion, named).Reaches("A: 201", "A: 400 /workspace_id"),
		together("revoke key", revocation, named).Reaches("A: 201", "A: 401 disabled"),
		scenario("repair after a restore", func(w *sim.World) {
			w.Credential("old")
			w.Restore()
			w.Create("A", sim.Create{}) // repeated before the repair, which would mend more
			w.Repair("repair")
		}).Reaches("A: 201", "repair: done"),
		together("repair of a full workspace", func(w *sim.World) {
			w.Fill(full, 0)
			w.Restore()
			w.Repair("repair")
		}, sim.Create{}).Reaches("A: 201", "A: 400 /workspace_id"),
		listedKeyDeleted("delete a listed key", 1, sim.Create{}).Reaches("A: 201", "A: 400 /allowed_api_key_hashes/0"),
		rotation("supersede, and disable the successor", 0).Reaches("supersede: the new credential is disabled"),
		rotation("supersede, and disable the successor later", byok.ReadTime).Reaches("supersede: done", "supersede: the new credential is disabled"),
		scenario("two successors", func(w *sim.World) {
			old, first, second := w.Credential("old"), w.Credential("first"), w.Credential("second")
			w.Supersede("first", old, first)
			w.Supersede("second", old, second)
		}).Reaches("first: done", "second: done"),
		scenario("one successor of two", func(w *sim.World) {
			one, successor, two := w.Credential("one"), w.Credential("successor"), w.Credential("two")
			w.Supersede("first", one, successor)
			w.Supersede("second", two, successor)
		}).Reaches("first: done", "second: done"),
		scenario("two supersede each other", func(w *sim.World) {
			one, two := w.Credential("one"), w.Credential("two")
			w.Supersede("first", one, two)
			w.Supersede("second", two, one)
		}).Reaches("first: the new credential is disabled", "second: the new credential is disabled"),
	}
}

// rotation makes a scenario of a credential that is superseded, and the disabling of its
// successor after a time.
func rotation(name string, after time.Duration) sim.Scenario {
	return scenario(name, func(w *sim.World) {
		old, successor := w.Credential("old"), w.Credential("successor")
		w.Supersede("supersede", old, successor)
		w.DisableCredential("disable", successor, after)
	})
}

// listedKeyDeleted makes a scenario of equal requests that list an API key, and the
// deletion of the key.
func listedKeyDeleted(name string, times int, c sim.Create) sim.Scenario {
	return scenario(name, func(w *sim.World) {
		token := w.StandardKey("")
		request := c
		request.Hashes = []string{string(auth.HashKey(token))}
		for i := range times {
			w.Create(string(rune('A'+i)), request)
		}
		w.DeleteKey("delete key", token)
	})
}

func orders() []sim.Scenario {
	return []sim.Scenario{
		together("purge workspace", func(w *sim.World) {
			w.Credential("old")
			w.PurgeWorkspace("purge workspace")
		}, sim.Create{}).Reaches("A: 201", "A: 400 /workspace_id"),
		together("the same request twice, workspace deleted", deletion, named, named).Reaches("B: 201 replayed", sim.CopiesDiffer),
		listedKeyDeleted("the same request twice, listed key deleted", 2, named).Reaches("B: 201 replayed", sim.CopiesDiffer),
	}
}

func crowds() []sim.Scenario {
	return []sim.Scenario{
		together("the same request three times", nothing, named, named, other).Reaches("B: 201 replayed", "B: 400", "C: 201", "C: 400"),
		together("three requests, key revoked", revocation, sim.Create{Unnamed: true}, sim.Create{}, named).Reaches("A: 201", "C: 401 disabled"),
		together("three requests and a deletion, room for one", func(w *sim.World) {
			w.Fill(full-1, 7)
			w.DeleteCredential("delete credential", w.Credential("old"))
		}, sim.Create{}, named, named).Reaches("A: 201", "A: 400 /workspace_id", "B: 201 replayed", sim.BoundPassed),
	}
}

func createRequest(body any) functest.Event {
	return functest.NewEvent(http.MethodPost, "/api/v1/byok").Sending(body)
}

func post(body string) functest.Event { return createRequest(nil).SendingText(body) }

// stranger makes another account.
func stranger(w *sim.World) kit.Tenant { return kit.NewTenant(w.TB(), w.Tenant.Registry) }

// askResponses compares responses with testdata.
func askResponses(w *sim.World) {
	t, home, foreign := w.TB(), w.Tenant, stranger(w)
	names := map[string]string{
		"KEY_HASH": string(auth.HashKey(home.Management)), "WORKSPACE": string(home.Workspace), "OTHER_WORKSPACE": string(home.NewWorkspace(t)),
		"PROVIDER_KEY": "sk-" + kit.Marker,
	}
	same := func(want, response string, e functest.Event) { functest.Golden(t, response, names, w.Ask(want, e)) }
	full, err := os.ReadFile("testdata/full.request")
	kit.Must(t, err)
	same("201", "full", post(os.Expand(string(full), func(name string) string { return names[name] })))
	once := post(least+`}`).With("Idempotency-Key", "once")
	w.Ask("201", once)
	same("400", "different-request", post(least+`,"disabled":false}`).With("Idempotency-Key", "once"))
	same("400    /disabled /name /workspace_id /key /provider /allowed_api_key_hashes /is_byok_only", "invalid", post(`{"provider": "OpenAI", "name": 7,
		"workspace_id": "x", "allowed_modells": ["m"], "allowed_api_key_hashes": [], "is_byok_only": true, "is_fallback": true, "disabled": null}`).
		With("Content-Type", "text/plain").With("Idempotency-Key", ""))
	for _, unknown := range []struct {
		workspace ids.Workspace
		key       string
	}{{foreign.Workspace, foreign.Management}, {home.DeletedWorkspace(t), home.DeletedKey(t)}, {ids.New[ids.Workspace](), "an unknown token"}} {
		same("400 /allowed_api_key_hashes/1 /workspace_id", "foreign", post(least+`,"workspace_id":"`+string(unknown.workspace)+`","allowed_api_key_hashes":["`+
			names["KEY_HASH"]+`","`+string(auth.HashKey(unknown.key))+`"]}`))
	}
}

// askForRoom creates 90 credentials, deletes 60 and fills the workspace. Room is free at
// once after a deletion. A workspace has a bound in bytes too.
func askForRoom(w *sim.World) {
	create := func() ids.Credential {
		var body struct{ Data struct{ ID ids.Credential } }
		_ = json.Unmarshal([]byte(w.Ask("201", post(least+"}")).Body), &body)
		return body.Data.ID
	}
	var made []ids.Credential
	for range 90 {
		made = append(made, create())
	}
	for _, id := range made[:60] {
		w.DeletedCredential(id)
	}
	for range 70 {
		create()
	}
	isFull := func(e functest.Event) {
		w.Ask("400 /workspace_id", e, "it holds at most 100 credentials, disabled ones included, and 700000 bytes of them")
	}
	isFull(post(least + "}"))
	w.DeletedCredential(made[60])
	create()
	isFull(post(least+"}").With("Idempotency-Key", "one"))

	large := func(bound int) functest.Event {
		e := createRequest(map[string]any{"provider": "z-ai", "key": strings.Repeat("k", 32768), "workspace_id": w.NewWorkspace("large")})
		e.Stage["credentialsPerWorkspace"] = strconv.Itoa(bound)
		return e
	}
	e := large(100)
	for range 20 { // 34 KB each
		w.Ask("201", e)
	}
	isFull(e)
	few := large(7)
	for range 7 {
		w.Ask("201", few)
	}
	w.Ask("400 /workspace_id", few, "it holds at most 7 credentials")
}

// askBodies sends bodies of several kinds. FuzzDecode compares many more with another decoder.
func askBodies(w *sim.World) {
	hash := func(token string) string { return `"` + string(auth.HashKey(token)) + `"` }
	own := hash(w.Tenant.Management)
	for _, hashes := range []string{strings.Repeat(own+",", 99) + own, hash(w.Tenant.DisabledKey(w.TB())) + "," + hash(w.Tenant.ExpiredKey(w.TB()))} {
		w.Ask("201", post(least+`,"allowed_api_key_hashes":[`+hashes+`]}`))
	}
	w.Ask("400 /key /provider", post(`{}`), `"path":"/provider","reason":"required"`)
	for _, c := range []struct{ paths, body string }{
		{"/key /provider", `{"key":7,"provider":7}`},
		{"/disabled /is_fallback /is_required", least + `,"disabled":null,"is_fallback":"true","is_required":1}`},
		{"/name /workspace_id", least + `,"name":7,"workspace_id":null}`},
	} {
		w.Ask("400 "+c.paths, post(c.body))
	}
}

// askHeaders sends idempotency keys, and stages with a bound. A standard key gets no issue.
func askHeaders(w *sim.World) {
	sound := post(least + "}")
	w.Ask("403 management_key_required", post("x").As(w.StandardKey(w.Tenant.Workspace)).With("Idempotency-Key", ""))
	w.Ask("400    /key", post(`{"provider":"openai"}`).With("Content-Encoding", "br").With("Content-Type", "x").With("Idempotency-Key", ""), "Idempotency-Key must be sent once")
	for _, key := range []string{"!", "~", strings.Repeat("k", 255), strings.Repeat("k", 254) + "!"} {
		first := w.Ask("201", sound.With("Idempotency-Key", key))
		if again := w.Ask("201 replayed", post(`{"provider":"openai" , "key":"\u0073k-0123456789abcdef"}`).With("Idempotency-Key", key)); again.Body != first.Body {
			w.TB().Errorf("%s is replayed as %s", first.Body, again.Body)
		}
		w.Ask("400", post(least+`,"disabled":false}`).With("Idempotency-Key", key), "used for a different request")
		w.Ask("400", sound.With("Idempotency-Key", key).With("Content-Type", "text/plain")) // before the replay
		w.Ask("201", sound.With("Idempotency-Key", key).As(w.Tenant.ManagementKey(w.TB())))
	}
	for _, keys := range [][]string{{""}, {strings.Repeat("k", 256)}, {"a b"}, {"é"}, {"a\x7f"}, {"a", "a"}} {
		w.Ask("400", sound.With("Idempotency-Key", keys...), "Idempotency-Key must be sent once")
	}
	for _, bound := range []string{"0", "101", "many"} {
		sound.Stage = map[string]string{"credentialsPerWorkspace": bound}
		w.Ask("500", sound, "credentialsPerWorkspace is not a number from 1 to 100")
	}
	sound.Stage = map[string]string{"credentialsPerWorkspace": "100"}
	w.Ask("201", sound)
}

// askStored asks while a row is unreadable. If such a row is the caller's own, that is a
// fault of the service, and the log names the row.
func askStored(w *sim.World) {
	workspace, token := w.NewWorkspace("damaged"), w.Tenant.StandardKey(w.TB(), "")
	repeated := post(least+"}").With("Idempotency-Key", "k")
	w.Ask("201", repeated)
	hash := auth.HashKey(token)
	for _, c := range []struct {
		table string
		row   kit.Row
		event functest.Event
		text  string
	}{
		{"access", kit.Key("workspace#"+string(workspace), "workspace"), post(least + `,"workspace_id":"` + string(workspace) + `"}`), "workspace " + string(workspace)},
		{"access", kit.Key("key#"+string(hash), "key"), post(least + `,"allowed_api_key_hashes":["` + string(hash) + `"]}`), "key " + hash.Short()},
		{"access", kit.Key("account#"+string(w.Tenant.ID), "account"), post(least + "}"), "account " + string(w.Tenant.ID)},
		{"control", w.Rows("control").All(w.TB())[0], repeated, "idempotency record is unreadable"},
	} {
		w.Unreadable(c.table, c.row, func() { w.Ask("500", c.event, "stored "+c.text) })
	}
	// A row that names no account is nobody's.
	for _, row := range []kit.Row{kit.Key("workspace#"+string(workspace), "workspace"), kit.Key("key#"+string(hash), "key")} {
		w.Rows("access").Set(w.TB(), row, "account", kit.Number("9"))
	}
	w.Ask("400 /workspace_id", post(least+`,"workspace_id":"`+string(workspace)+`"}`), "stored workspace "+string(workspace))
	w.Ask("400 /allowed_api_key_hashes/0", post(least+`,"allowed_api_key_hashes":["`+string(hash)+`"]}`), "stored key "+hash.Short())
}
