package main

import (
	"maps"
	"net/http"
	"os"
	"slices"
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
	key, idem, account = "GetItem key#", "GetItem idem#", "GetItem account#"
	position, dataKey  = "UpdateItem workspace#", "GenerateDataKey"
	hashes             = "BatchGetItem key#"
	workspace, refusal = "GetItem workspace#", "PutItem idem#"
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
	// last is a request in a workspace for one credential.
	last = sim.Create{Most: 1}
)

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
	frozen, behind := one("frozen for an hour", 0, nil, unnamed, nil), one("clock behind", 0, nil, unnamed, nil)
	frozen.Frozen, behind.Clock = true, 10*time.Minute
	hash := func(token string) string { return string(auth.HashKey(token)) }
	return []sim.Scenario{
		scenario("responses", askResponses), scenario("bodies", askBodies), scenario("headers", askHeaders), scenario("callers", askCallers),
		scenario("stored rows", askStored), scenario("another body", askForRoom),
		frozen, behind,
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
		one("refused before, now there is room", 0, nil, sim.Create{Idempotency: "once", Most: 1}, func(w *sim.World, c *sim.Create) {
			old := w.Created("old", last)
			w.Wait(30 * time.Second)
			w.Refused("earlier", *c)
			w.DeletedCredential(old)
			w.Wait(31 * time.Second)
		}),
		one("a refused request has left its room", 0, nil, last, func(w *sim.World, _ *sim.Create) {
			w.Refused("earlier", refused(w))
		}),
		one("a full workspace is counted", 0, nil, last, func(w *sim.World, c *sim.Create) {
			w.DeletedCredential(w.Created("old", *c))
			w.Wait(2 * time.Minute)
		}),
		one("unknown member", 1, []string{key}, sim.Create{Unnamed: true, Changed: map[string]any{testkit.Marker + "models": "x"}, Never: http.StatusBadRequest}, nil),
		one("unknown API key in the list", 4, []string{key, account, position, dataKey, hashes, position}, unnamed, func(w *sim.World, c *sim.Create) {
			c.Hashes = []string{hash(w.Tenant.Management), w.UnknownHash()}
		}),
		one("another account's API key in the list", 4, []string{key, account, position, dataKey, hashes, position}, sim.Create{Unnamed: true, Never: http.StatusBadRequest}, func(w *sim.World, c *sim.Create) {
			c.Hashes = []string{hash(stranger(w).Management)}
		}),
		one("another account's workspace", 3, []string{key, position, workspace, dataKey}, invalid, func(w *sim.World, c *sim.Create) {
			c.Workspace = stranger(w).Workspace
		}),
		one("unknown workspace", 3, []string{key, position, workspace, dataKey}, invalid, func(_ *sim.World, c *sim.Create) {
			c.Workspace = ids.New[ids.Workspace]()
		}),
		one("deleted workspace", 4, []string{key, idem, position, workspace, dataKey, refusal}, named, withoutWorkspace),
		one("no default workspace", 2, []string{key, account}, unnamed, withoutWorkspace),
		one("standard key", 1, []string{key, idem}, sim.Create{Idempotency: "once", Never: http.StatusForbidden}, func(w *sim.World, c *sim.Create) {
			c.Token = w.StandardKey("")
		}),
		one("unknown key", 1, []string{key, idem}, named, func(w *sim.World, c *sim.Create) { c.Token = w.UnknownKey() }),
	}
}

// refused is a request for a place in a workspace for one credential. It gets a 400.
func refused(w *sim.World) sim.Create { return sim.Create{Most: 1, Hashes: []string{w.UnknownHash()}} }

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
	lastNamed := sim.Create{Idempotency: "once", Most: 1}
	return []sim.Scenario{
		together("the same request twice", nothing, named, named),
		together("two requests under one idempotency key", nothing, named, other),
		together("two requests", nothing, sim.Create{}, sim.Create{}),
		together("two requests for the last place", nothing, last, last),
		scenario("a request that is refused and one for the last place", func(w *sim.World) {
			w.Create("A", last)
			w.Create("B", refused(w))
		}),
		together("the same request twice for the last place", nothing, lastNamed, lastNamed),
		together("two requests, record expired", func(w *sim.World) {
			w.Created("earlier", named)
			w.Expire("once")
		}, named, named),
		together("delete a credential of a full workspace", func(w *sim.World) {
			w.DeleteCredential("delete credential", w.Credential("old"))
		}, last),
		together("delete workspace", deletion, sim.Create{}),
		together("delete default workspace", deletion, sim.Create{Unnamed: true}),
		together("delete workspace, idempotency key", deletion, named),
		together("revoke key", revocation, named),
		together("repair after a restore", func(w *sim.World) {
			w.Credential("old")
			w.Restore()
			w.Repair("repair")
		}, sim.Create{}),
		listedKeyDeleted("delete a listed key", 1, sim.Create{}),
	}
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
		}, sim.Create{}),
		together("the same request twice, workspace deleted", deletion, named, named),
		listedKeyDeleted("the same request twice, listed key deleted", 2, named),
	}
}

func crowds() []sim.Scenario {
	return []sim.Scenario{
		together("the same request three times", nothing, named, named, other),
		together("three requests, key revoked", revocation, sim.Create{Unnamed: true}, sim.Create{}, named),
		together("supersede while created", func(w *sim.World) {
			old, successor := w.Credential("old"), w.Credential("successor")
			w.Supersede("supersede", old, successor)
			w.DisableCredential("disable", successor)
			w.DeleteCredential("delete", old)
		}, named),
	}
}

func createRequest(body any) functest.Event {
	return functest.NewEvent(http.MethodPost, "/api/v1/byok").Sending(body)
}

func post(body string) functest.Event { return createRequest(nil).SendingText(body) }

// stranger makes another account.
func stranger(w *sim.World) testkit.Tenant { return testkit.NewTenant(w.TB(), w.Tenant.Registry) }

// askResponses compares responses with testdata.
func askResponses(w *sim.World) {
	t, home, foreign := w.TB(), w.Tenant, stranger(w)
	names := map[string]string{
		"KEY_HASH": string(auth.HashKey(home.Management)), "WORKSPACE": string(home.Workspace), "OTHER_WORKSPACE": string(home.NewWorkspace(t)),
		"PROVIDER_KEY": "sk-" + testkit.Marker,
	}
	same := func(want, response string, e functest.Event) { functest.Golden(t, response, names, w.Ask(want, e)) }
	full, err := os.ReadFile("testdata/full.request")
	testkit.Must(t, err)
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

// askForRoom repeats a request in a workspace with one place left. A copy shares its place.
// The same Idempotency-Key with another, perhaps larger body is not a copy. The bytes of a
// workspace have a bound too.
func askForRoom(w *sim.World) {
	set := func(name, value string) {
		w.Rows("access").Set(w.TB(), testkit.Key("workspace#"+string(w.Tenant.Workspace), "workspace"), name, testkit.Number(value))
	}
	set("used", "99")
	ask := func(want, members string) {
		w.Ask(want, post(least+members+"}").With("Idempotency-Key", "one"))
		w.Rows("control").Become(w.TB(), nil) // as if the next request came at the same time
	}
	ask("201", "")
	ask("201", "")
	ask("400 /workspace_id", `,"disabled":true`)
	set("used", "1")
	set("bytes", "999999")
	w.Ask("400 /workspace_id", post(least+"}"), "1000000 bytes of them")
}

// askBodies sends bodies of every kind. Each response has all issues, and the texts after
// the "|".
func askBodies(w *sim.World) {
	long := func(s string, n int) string { return strings.Repeat(s, n) }
	list := func(element string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(`"`+element+`",`, n), ",") + "]"
	}
	hash := string(auth.HashKey(w.Tenant.Management))
	for _, body := range []string{
		`}`, `,"name":null,"allowed_api_key_hashes":null,"allowed_models":[],"allowed_user_ids":["u","é","\ud83d\ude00"]} `,
		`,"workspace_id":"` + strings.ToUpper(string(w.Tenant.Workspace)) + `","is_fallback":true,"is_required":true,"disabled":true}`,
		`,"is_byok_only":true,"is_required":true,"disabled":false,"name":""}`,
		`,"name":"` + long("é", 255) + `","allowed_models":["` + long("é", 255) + `"]}`,
		`,"allowed_models":` + list("m", 100) + `,"allowed_user_ids":` + list("u", 100) + `,"allowed_api_key_hashes":` + list(hash, 100) + `}`,
	} {
		w.Ask("201", post(least+body), `"label":"sk-...cdef"`)
	}
	labels := map[string]string{
		"0123456789abcde": "...", "0123456789abcdef": "012...cdef", "0123456789abcde ": "...", "0123456789 abcdef": "...", "0123456789abcdefé": "...",
		"!~!456789abcd~!~!": "!~!...~!~!", "{123456789abcdef}": "...", "[123456789abcdef]": "...", `\"123456789abcdef`: "...",
		"0123456789abcde\u007f": "...", long("k", 32768): "kkk...kkkk", "k": "...",
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		w.Ask("201", post(`{"key":"`+key+`","provider":"z-ai"}`), `"label":"`+labels[key]+`"`)
	}
	askAll(w, least, map[string]string{
		`,"is_byok_only":true,"is_fallback":true}`: "/is_byok_only", `,"disabled":null,"is_fallback":"true","is_required":1}`: "/disabled /is_fallback /is_required",
		`,"allowed_api_key_hashes":[]}`: "/allowed_api_key_hashes", `,"allowed_api_key_hashes":` + list(hash, 101) + `}`: "/allowed_api_key_hashes",
		`,"allowed_api_key_hashes":["` + strings.ToUpper(hash) + `","` + hash[1:] + `","` + hash[1:] + `g"]}`: "/allowed_api_key_hashes/0 /allowed_api_key_hashes/1 /allowed_api_key_hashes/2",
		`,"allowed_models":["m",""]}`: "/allowed_models/1", `,"allowed_models":["` + long("é", 256) + `"]}`: "/allowed_models/0", `,"allowed_models":` + list("m", 101) + `}`: "/allowed_models",
		`,"allowed_user_ids":["u",1,null]}`: "/allowed_user_ids/1 /allowed_user_ids/2", `,"allowed_user_ids":"u"}`: "/allowed_user_ids", `,"allowed_user_ids":{"a":{"u":"v"}}}`: "/allowed_user_ids",
		`,"name":"` + long("é", 256) + `"}`: "/name", `,"name":7}`: "/name", `,"name":"\ud800"}`: "/name", ",\"name\":\"\ufffd\"}": "/name", ",\"name\":\"\xff\"}": "/name",
		`,"workspace_id":null}`: "/workspace_id", `,"workspace_id":""}`: "/workspace_id", `,"workspace_id":"{` + string(w.Tenant.Workspace[1:35]) + `}"}`: "/workspace_id",
		`,"key":"another"}`: "/key", `,"\u006bey":"another"}`: "/key", `,"allowed_models":[{"\ufffd":1}]}`: "/allowed_models /allowed_models/0",
		`,"Name":"n"}`: "|unknown member; did you mean name?", `,"allowed_modells":[]}`: "|did you mean allowed_models?", `,"apiKey":1}`: "|did you mean key?",
		`,"workspace":"w"}`: "|did you mean workspace_id?", `,"models":[]}`: "|did you mean allowed_models?", `,"xyzzyxyzzy":[]}`: `|"unknown member"`, `,"Is-Fallback":1}`: "|did you mean is_fallback?",
		`,"qqq":1}`: `|"unknown member"`, `,"mod1els":1}`: `|"unknown member"`, `,"mod":1}`: `|"unknown member"`, `,"MODEL":1}`: "|did you mean allowed_models?", `,"":1}`: `|"unknown member"`,
		`} {}`: "|trailing data", `}x`: "|trailing data", `,}`: "|error at byte", `,"name"}`: "|error at byte", `,5:1}`: "|error at byte", `,"name":nul}`: "|error at byte", ``: "|error at byte",
		`,"name":"` + long("n", 65536) + `"}`: "|larger than 65536 bytes",
	})
	askAll(w, "", map[string]string{
		`{"provider":"openai"}`: "/key", `{"key":"sk"}`: "/provider", `{"key":"","provider":"openai\n"}`: "/key /provider", `{}`: "/key /provider", `{"key":7,"provider":7}`: "/key /provider",
		`{"key":"sk","provider":"OpenAI"}`: "/provider|did you mean openai?", `{"key":"sk","provider":"qqqqqqqqq"}`: `/provider|under Provider"}`,
		`{"key":"` + long("k", 32769) + `","provider":"openai"}`: "/key", `{"key":"\ud800","provider":"open"}`: "/key /provider",
		`[]`: "|must be one JSON object", `null`: "|must be one JSON object", `{"key":`: "|error at byte 7", `"x`: "|error at byte", "\ufeff{}": "|error at byte 0", ``: "|empty", ` `: "|error at byte",
		`{"key":{"` + testkit.Marker + `":1,"` + testkit.Marker + `":[{"a":"b"}]},"provider":["openai"]}`: "/key /provider",
	})
	w.Ask("400 "+strings.TrimSpace(strings.Repeat(" ", 99)), post(`{`+strings.Repeat(`"`+testkit.Marker+`":1,`, 101)+`"key":1}`))
}

// askAll sends invalid bodies that begin like this.
func askAll(w *sim.World, beginning string, invalid map[string]string) {
	for _, body := range slices.Sorted(maps.Keys(invalid)) {
		paths, text, _ := strings.Cut(invalid[body], "|")
		w.Ask("400 "+paths, post(beginning+body), text)
	}
}

// askHeaders sends the headers that describe the body, and idempotency keys.
func askHeaders(w *sim.World) {
	sound := post(least + "}")
	for _, media := range []string{"application/json", "Application/JSON; charset=UTF-8", `application/json; charset="utf-8"; v=1`} {
		w.Ask("201", sound.With("Content-Type", media))
	}
	for _, media := range [][]string{nil, {"text/plain"}, {"application/json; charset=latin1"}, {"application/json", "application/json"}, {"application/json; charset"}, {""}} {
		w.Ask("400", sound.With("Content-Type", media...), "Content-Type must be sent once")
	}
	w.Ask("201", sound.With("Content-Encoding", "identity", " Identity"))
	w.Ask("400", sound.With("Content-Encoding", "identity", "gzip"), "Content-Encoding must be identity")
	w.Ask("400    /key", post(`{"provider":"openai"}`).With("Content-Encoding", "br").With("Content-Type", "x").With("Idempotency-Key", ""), "Idempotency-Key must be sent once")
	for _, key := range []string{"!", "~", strings.Repeat("k", 255), strings.Repeat("k", 254) + "!"} {
		first := w.Ask("201", sound.With("Idempotency-Key", key))
		if again := w.Ask("201 replayed", post(`{"provider":"openai" , "key":"\u0073k-0123456789abcdef"}`).With("Idempotency-Key", key)); again.Body != first.Body {
			w.TB().Errorf("%s is replayed as %s", first.Body, again.Body)
		}
		w.Ask("400", post(least+`,"disabled":false}`).With("Idempotency-Key", key), "used for a different request")
		w.Ask("201", sound.With("Idempotency-Key", key).As(w.Tenant.ManagementKey(w.TB())))
	}
	for _, keys := range [][]string{{""}, {strings.Repeat("k", 256)}, {"a b"}, {"é"}, {"a\x7f"}, {"a", "a"}} {
		w.Ask("400", sound.With("Idempotency-Key", keys...), "Idempotency-Key must be sent once")
	}
	encoded := createRequest(nil).SendingBytes([]byte(least + `}`))
	encoded.Body += "!"
	w.Ask("500", encoded, "not a REST API proxy event")
	for _, most := range []string{"0", "101", "many"} {
		sound.Stage = map[string]string{"credentialsPerWorkspace": most}
		w.Ask("500", sound, "credentialsPerWorkspace is not a number from 1 to 100")
	}
	sound.Stage = map[string]string{"credentialsPerWorkspace": "1"}
	w.Ask("400 /workspace_id", sound, "it holds at most 1 credentials")
	sound.Stage = map[string]string{"credentialsPerWorkspace": "100"}
	w.Ask("201", sound)
}

// askCallers sends requests of other keys, for other resources.
func askCallers(w *sim.World) {
	stranger := stranger(w)
	for _, workspace := range []ids.Workspace{stranger.Workspace, w.Tenant.DeletedWorkspace(w.TB()), ids.New[ids.Workspace]()} {
		w.Ask("400 /workspace_id", post(least+`,"workspace_id":"`+string(workspace)+`"}`))
	}
	hash := func(token string) string { return `"` + string(auth.HashKey(token)) + `"` }
	own, t := w.Tenant, w.TB()
	w.Ask("201", post(least+`,"allowed_api_key_hashes":[`+hash(own.DisabledKey(t))+","+hash(own.ExpiredKey(t))+"]}"))
	w.Ask("400 /workspace_id", post(least+`,"workspace_id":"`+string(own.DeletedWorkspace(t))+`","allowed_api_key_hashes":[`+hash(own.Management)+"]}"))
	w.Ask("400 /allowed_api_key_hashes/0 /allowed_api_key_hashes/2 /workspace_id", post(least+`,"workspace_id":"`+string(stranger.Workspace)+
		`","allowed_api_key_hashes":[`+hash(stranger.Management)+","+hash(own.Management)+","+hash(own.DeletedKey(t))+"]}"))
	w.AskCallers("201", post(least+"}"))
	w.Ask("403", post("x").As(own.StandardKey(t, own.Workspace)).With("Idempotency-Key", ""))
}

// askStored stores rows that this service never writes. If such a row is the caller's own,
// that is a fault of the service, and the log names the row.
func askStored(w *sim.World) {
	workspace, token := w.NewWorkspace("damaged"), w.Tenant.StandardKey(w.TB(), "")
	place := post(least + `,"workspace_id":"` + string(workspace) + `"}`)
	listed := post(least + `,"allowed_api_key_hashes":["` + string(auth.HashKey(token)) + `"]}`)
	repeated := post(least+"}").With("Idempotency-Key", "k")
	w.Ask("201", repeated)
	record := w.Rows("control").All(w.TB())[0]
	for _, c := range []struct {
		table  string
		row    testkit.Row
		event  functest.Event
		damage map[string]string // of attributes, with the response
		text   string
	}{
		{"access", testkit.Key("workspace#"+string(workspace), "workspace"), place, map[string]string{
			"v=2": "500", "v": "500", "account": "400 /workspace_id", "account=other": "400 /workspace_id", "deleted_at=1": "400 /workspace_id", "next": "500", "next=x": "500", "used=x": "500",
		}, "stored workspace " + string(workspace)},
		{"access", testkit.Key("key#"+string(auth.HashKey(token)), "key"), listed, map[string]string{
			"v=2": "500", "kind=x": "500", "disabled": "500", "name=NULL": "500", "account": "400 /allowed_api_key_hashes/0", "account=other": "400 /allowed_api_key_hashes/0", "disabled=true": "201",
		}, "stored key " + auth.HashKey(token).Short()},
		{"access", testkit.Key("account#"+string(w.Tenant.ID), "account"), post(least + "}"), map[string]string{
			"v=2": "500", "name=NULL": "500", "default_workspace": "400 /workspace_id",
		}, "stored account " + string(w.Tenant.ID)},
		{"control", record, repeated, map[string]string{"v=1": "500", "exp=x": "500", "exp=1": "201"}, "stored idempotency record is unreadable"},
	} {
		for _, damage := range slices.Sorted(maps.Keys(c.damage)) {
			w.Damaged(c.table, c.row, damage, func() {
				text := ""
				if c.damage[damage] == "500" {
					text = c.text
				}
				w.Ask(c.damage[damage], c.event, text)
			})
		}
	}
}
