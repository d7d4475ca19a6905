package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/test/cases"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

func createRequest(body any) functest.Event {
	return functest.NewEvent(http.MethodPost, "/api/v1/byok").Sending(body)
}

func post(body string) functest.Event { return createRequest(nil).SendingText(body) }

// TestResponses sends a request with every member, and one with many faults. Other accounts'
// workspaces and API keys get the same response as deleted and unknown ones.
func TestResponses(t *testing.T) {
	cases.OnModel(t, "", 0, func(env *cases.Environment) {
		ask := env.Asker(assemble)
		t, home, foreign := env.TB(), env.Tenant, env.Stranger()
		own, other := string(auth.HashKey(home.Management)), string(home.NewWorkspace(t))
		given := `"provider":"amazon-bedrock/claude-on-aws",%s"workspace_id":"` + other + `",%s"disabled":true,"is_byok_only":true,"is_fallback":false,"is_required":true,` +
			`"allowed_api_key_hashes":["` + own + `"],"allowed_models":[],"allowed_user_ids":["u-1","u-1"]`
		const name = `"name":"Zürich – team <a> & \"b\"",`
		ask("201", post(`{"key":"{\"type\": \"service_account\", \"private_key\": \"sk-`+kit.Marker+`\"}",`+name+fmt.Sprintf(given, "", "")+`}`),
			name+fmt.Sprintf(given, `"label":"...",`, `"created_at":"2000-01-01T00:00:00Z",`)+`,"sort_order":0}}`)
		ask("400    /disabled /name /workspace_id /key /provider /allowed_api_key_hashes /is_byok_only", post(`{"provider": "OpenAI", "name": 7,
			"workspace_id": "x", "allowed_modells": ["m"], "allowed_api_key_hashes": [], "is_byok_only": true, "is_fallback": true, "disabled": null}`).
			With("Content-Type", "text/plain").With("Idempotency-Key", ""),
			`"reason":"invalid","message":"Idempotency-Key must be sent once, with 1 to 255 visible ASCII characters"`,
			`"reason":"invalid","message":"Content-Type must be sent once, as application/json with charset utf-8 or none"`,
			`"reason":"unknown_member","message":"unknown member; did you mean allowed_models?"`,
			`"path":"/disabled","reason":"invalid","message":"must be true or false"`, `"path":"/name","reason":"invalid","message":"must be a string"`,
			`"path":"/workspace_id","reason":"invalid","message":"must be a UUID"`, `"path":"/key","reason":"required","message":"is required"`,
			`"path":"/provider","reason":"invalid","message":"must be a slug that the OpenAPI document lists under Provider; did you mean openai?"`,
			`"path":"/allowed_api_key_hashes","reason":"invalid","message":"must have 1 to 100 elements, or be null"`,
			`"path":"/is_byok_only","reason":"invalid","message":"cannot be combined with is_fallback"`)
		ask("400 /key /provider", post(`{}`), `"path":"/provider","reason":"required"`)
		unknown := func(workspace ids.Workspace, key string) string {
			return ask("400 /allowed_api_key_hashes/1 /workspace_id", post(least+`,"workspace_id":"`+string(workspace)+`","allowed_api_key_hashes":["`+
				own+`","`+string(auth.HashKey(key))+`"]}`),
				`"reason":"unknown","message":"must be the hash of an API key of the account"`,
				`"reason":"unknown","message":"must be a workspace of the account that is not deleted; if omitted, the account must have a default workspace"`).Text()
		}
		missing := unknown(ids.New[ids.Workspace](), "an unknown token")
		deleted := home.ManagementKey(t)
		kit.Must(t, home.Registry.DeleteKey(t.Context(), home.ID, auth.HashKey(deleted)))
		for _, got := range []string{unknown(foreign.Workspace, foreign.Management), unknown(home.DeletedWorkspace(t), deleted)} {
			if got != missing {
				t.Errorf("it differs from the answer to unknown ones, %s: %s", missing, got)
			}
		}
	})
}

// TestRoom creates 90 credentials, deletes 60 and fills the workspace. Room is free at
// once after a deletion. A workspace has a bound in bytes too.
func TestRoom(t *testing.T) {
	cases.OnModel(t, "", 0, func(env *cases.Environment) {
		ask := env.Asker(assemble)
		create := func() ids.Credential {
			var body struct{ Data struct{ ID ids.Credential } }
			_ = json.Unmarshal([]byte(ask("201", post(least+"}")).Body), &body)
			return body.Data.ID
		}
		remove := func(id ids.Credential) {
			kit.Must(env.TB(), env.Manager.Delete(env.TB().Context(), env.Tenant.Workspace, id))
		}
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
		kit.Must(env.TB(), env.Registry.ForgetMade(env.TB().Context(), env.Tenant.Workspace)) // as after a restore
		isFull(post(least + "}"))

		large := func(bound int) functest.Event {
			e := createRequest(map[string]any{"provider": "z-ai", "key": strings.Repeat("k", 32768), "workspace_id": env.Tenant.NewWorkspace(env.TB())})
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

// TestHeaders sends idempotency keys, and stages with a bound. A standard key gets no issue.
func TestHeaders(t *testing.T) {
	cases.OnModel(t, "", 0, func(env *cases.Environment) {
		ask := env.Asker(assemble)
		sound := post(least + "}")
		ask("403 management_key_required", post("x").As(env.Tenant.StandardKey(env.TB(), env.Tenant.Workspace)).With("Idempotency-Key", ""))
		ask("400    /key", post(`{"provider":"openai"}`).With("Content-Encoding", "br").With("Content-Type", "x").With("Idempotency-Key", ""), "Idempotency-Key must be sent once")
		for _, key := range []string{"!", "~", strings.Repeat("k", 255), strings.Repeat("k", 254) + "!"} {
			first := ask("201", sound.With("Idempotency-Key", key))
			if again := ask("201 replayed", post(`{"provider":"openai" , "key":"\u0073k-0123456789abcdef"}`).With("Idempotency-Key", key)); again.Body != first.Body {
				env.TB().Errorf("%s is replayed as %s", first.Body, again.Body)
			}
			ask("400", post(least+`,"disabled":false}`).With("Idempotency-Key", key), "used for a different request")
			ask("400", sound.With("Idempotency-Key", key).With("Content-Type", "text/plain")) // before the replay
			ask("201", sound.With("Idempotency-Key", key).As(env.Tenant.ManagementKey(env.TB())))
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
	cases.OnModel(t, "", 0, func(env *cases.Environment) {
		ask := env.Asker(assemble)
		workspace, token := env.Tenant.NewWorkspace(env.TB()), env.Tenant.StandardKey(env.TB(), "")
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
			{"access", kit.Key("account#"+string(env.Tenant.ID), "account"), post(least + "}"), "account " + string(env.Tenant.ID)},
			{"control", env.Rows(env.Outputs.Control).All(env.TB())[0], repeated, "answer to an idempotent request: unknown layout"},
		} {
			env.Damaged(c.table, c.row, func() { ask("500", c.event, "stored "+c.text) })
		}
		// A row that names no account is nobody's.
		for _, row := range []kit.Row{kit.Key("workspace#"+string(workspace), "workspace"), kit.Key("key#"+string(hash), "key")} {
			env.Rows(env.Outputs.Access).Set(env.TB(), row, "account", kit.Number("9"))
		}
		ask("400 /workspace_id", post(least+`,"workspace_id":"`+string(workspace)+`"}`), "stored workspace "+string(workspace))
		ask("400 /allowed_api_key_hashes/0", post(least+`,"allowed_api_key_hashes":["`+string(hash)+`"]}`), "stored key "+hash.Short())
	})
}

// TestLargest sends the largest request: 64 KB under an idempotency key, with 100 hashes, to a
// workspace with a counter of each provider. Then it repeats it after a day, with 1 MB stored.
func TestLargest(t *testing.T) {
	cases.OnModel(t, "", 0, func(env *cases.Environment) {
		ask, t := env.Asker(assemble), env.TB()
		access, credentials, control := env.Rows(env.Outputs.Access), env.Rows(env.Outputs.Credentials), env.Rows(env.Outputs.Control)
		workspace, counters := kit.Key("workspace#"+string(env.Tenant.Workspace), "workspace"), kit.Row{}
		for _, provider := range byok.Providers() {
			counters[provider] = kit.Number("1234567890123456")
		}
		access.Set(t, workspace, "next", &types.AttributeValueMemberM{Value: counters})
		var hashes, texts []string
		for range 100 {
			hashes = append(hashes, string(auth.HashKey(env.Tenant.StandardKey(t, env.Tenant.Workspace))))
			texts = append(texts, strings.Repeat("\U0001f511", 144)+"four")
		}
		e := createRequest(map[string]any{"key": "sk-0123456789abcdef", "provider": "openai", "allowed_api_key_hashes": hashes, "allowed_models": texts}).With("Idempotency-Key", "once")
		ask("201", e)

		row := credentials.All(t)[0]
		for n := range 16 {
			row["sk"] = kit.Text(fmt.Sprintf("credential#%d", n))
			credentials.Put(t, row)
		}
		access.Set(t, workspace, "made", kit.Number("1000"))
		control.Set(t, control.All(t)[0], "exp", kit.Number("1"))
		ask("400 /workspace_id", e)
	})
}
