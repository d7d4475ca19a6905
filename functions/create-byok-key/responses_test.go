package main

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"signalbox.dev/infra/test/cases"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

func createRequest(body any) functest.Event {
	return functest.NewEvent(http.MethodPost, "/api/v1/byok").Sending(body)
}

func post(body string) functest.Event { return createRequest(nil).SendingText(body) }

// TestResponses compares responses with testdata.
func TestResponses(t *testing.T) {
	cases.OnModel(t, "", 0, func(w *cases.World) {
		ask := w.Asker(assemble)
		t, home, foreign := w.TB(), w.Tenant, w.Stranger()
		names := map[string]string{
			"KEY_HASH": string(auth.HashKey(home.Management)), "WORKSPACE": string(home.Workspace), "OTHER_WORKSPACE": string(home.NewWorkspace(t)),
			"PROVIDER_KEY": "sk-" + kit.Marker,
		}
		same := func(want, response string, e functest.Event) { functest.Golden(t, response, names, ask(want, e)) }
		full, err := os.ReadFile("testdata/full.request")
		kit.Must(t, err)
		same("201", "full", post(os.Expand(string(full), func(name string) string { return names[name] })))
		once := post(least+`}`).With("Idempotency-Key", "once")
		ask("201", once)
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
	})
}

// TestRoom creates 90 credentials, deletes 60 and fills the workspace. Room is free at
// once after a deletion. A workspace has a bound in bytes too.
func TestRoom(t *testing.T) {
	cases.OnModel(t, "", 0, func(w *cases.World) {
		ask := w.Asker(assemble)
		create := func() ids.Credential {
			var body struct{ Data struct{ ID ids.Credential } }
			_ = json.Unmarshal([]byte(ask("201", post(least+"}")).Body), &body)
			return body.Data.ID
		}
		remove := func(id ids.Credential) { kit.Must(w.TB(), w.Manager.Delete(w.TB().Context(), w.Tenant.Workspace, id)) }
		var made []ids.Credential
		for range 90 {
			made = append(made, create())
		}
		for _, id := range made[:60] {
			remove(id)
		}
		for range 70 {
			create()
		}
		isFull := func(e functest.Event) {
			ask("400 /workspace_id", e, "it holds at most 100 credentials, disabled ones included, and 700000 bytes of them")
		}
		isFull(post(least + "}"))
		remove(made[60])
		create()
		isFull(post(least+"}").With("Idempotency-Key", "one"))

		large := func(bound int) functest.Event {
			e := createRequest(map[string]any{"provider": "z-ai", "key": strings.Repeat("k", 32768), "workspace_id": w.Tenant.NewWorkspace(w.TB())})
			e.Stage["credentialsPerWorkspace"] = strconv.Itoa(bound)
			return e
		}
		e := large(100)
		for range 20 { // 34 KB each
			ask("201", e)
		}
		isFull(e)
		few := large(7)
		for range 7 {
			ask("201", few)
		}
		ask("400 /workspace_id", few, "it holds at most 7 credentials")
	})
}

// TestBodies sends bodies of several kinds. FuzzDecode compares many more with another decoder.
func TestBodies(t *testing.T) {
	cases.OnModel(t, "", 0, func(w *cases.World) {
		ask := w.Asker(assemble)
		hash := func(token string) string { return `"` + string(auth.HashKey(token)) + `"` }
		own := hash(w.Tenant.Management)
		for _, hashes := range []string{strings.Repeat(own+",", 99) + own, hash(w.Tenant.DisabledKey(w.TB())) + "," + hash(w.Tenant.ExpiredKey(w.TB()))} {
			ask("201", post(least+`,"allowed_api_key_hashes":[`+hashes+`]}`))
		}
		ask("400 /key /provider", post(`{}`), `"path":"/provider","reason":"required"`)
		for _, c := range []struct{ paths, body string }{
			{"/key /provider", `{"key":7,"provider":7}`},
			{"/disabled /is_fallback /is_required", least + `,"disabled":null,"is_fallback":"true","is_required":1}`},
			{"/name /workspace_id", least + `,"name":7,"workspace_id":null}`},
		} {
			ask("400 "+c.paths, post(c.body))
		}
	})
}

// TestHeaders sends idempotency keys, and stages with a bound. A standard key gets no issue.
func TestHeaders(t *testing.T) {
	cases.OnModel(t, "", 0, func(w *cases.World) {
		ask := w.Asker(assemble)
		sound := post(least + "}")
		ask("403 management_key_required", post("x").As(w.Tenant.StandardKey(w.TB(), w.Tenant.Workspace)).With("Idempotency-Key", ""))
		ask("400    /key", post(`{"provider":"openai"}`).With("Content-Encoding", "br").With("Content-Type", "x").With("Idempotency-Key", ""), "Idempotency-Key must be sent once")
		for _, key := range []string{"!", "~", strings.Repeat("k", 255), strings.Repeat("k", 254) + "!"} {
			first := ask("201", sound.With("Idempotency-Key", key))
			if again := ask("201 replayed", post(`{"provider":"openai" , "key":"\u0073k-0123456789abcdef"}`).With("Idempotency-Key", key)); again.Body != first.Body {
				w.TB().Errorf("%s is replayed as %s", first.Body, again.Body)
			}
			ask("400", post(least+`,"disabled":false}`).With("Idempotency-Key", key), "used for a different request")
			ask("400", sound.With("Idempotency-Key", key).With("Content-Type", "text/plain")) // before the replay
			ask("201", sound.With("Idempotency-Key", key).As(w.Tenant.ManagementKey(w.TB())))
		}
		for _, keys := range [][]string{{""}, {strings.Repeat("k", 256)}, {"a b"}, {"é"}, {"a\x7f"}, {"a", "a"}} {
			ask("400", sound.With("Idempotency-Key", keys...), "Idempotency-Key must be sent once")
		}
		for _, bound := range []string{"0", "101", "many"} {
			sound.Stage = map[string]string{"credentialsPerWorkspace": bound}
			ask("500", sound, "credentialsPerWorkspace is not a number from 1 to 100")
		}
		sound.Stage = map[string]string{"credentialsPerWorkspace": "100"}
		ask("201", sound)
	})
}

// TestStoredRows asks while a row is damaged. If such a row is the caller's own, that is a
// fault of the service, and the log names the row.
func TestStoredRows(t *testing.T) {
	cases.OnModel(t, "", 0, func(w *cases.World) {
		ask := w.Asker(assemble)
		workspace, token := w.Tenant.NewWorkspace(w.TB()), w.Tenant.StandardKey(w.TB(), "")
		repeated := post(least+"}").With("Idempotency-Key", "k")
		ask("201", repeated)
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
			{"control", w.Rows(w.Outputs.Control).All(w.TB())[0], repeated, "answer to an idempotent request: unknown layout"},
		} {
			w.Damaged(c.table, c.row, func() { ask("500", c.event, "stored "+c.text) })
		}
		// A row that names no account is nobody's.
		for _, row := range []kit.Row{kit.Key("workspace#"+string(workspace), "workspace"), kit.Key("key#"+string(hash), "key")} {
			w.Rows(w.Outputs.Access).Set(w.TB(), row, "account", kit.Number("9"))
		}
		ask("400 /workspace_id", post(least+`,"workspace_id":"`+string(workspace)+`"}`), "stored workspace "+string(workspace))
		ask("400 /allowed_api_key_hashes/0", post(least+`,"allowed_api_key_hashes":["`+string(hash)+`"]}`), "stored key "+hash.Short())
	})
}
