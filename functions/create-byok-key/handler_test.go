package main

import (
	"net/http"
	"os"
	"testing"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
)

func createRequest(body any) functest.Event {
	return functest.NewEvent(http.MethodPost, "/api/v1/byok").Sending(body)
}

func TestResponses(t *testing.T) {
	env := functest.New(t, assemble)
	home, stranger := env.NewTenant(t), env.NewTenant(t)
	names := map[string]string{
		"KEY_HASH":        string(auth.HashKey(home.Management)),
		"WORKSPACE":       string(home.Workspace),
		"OTHER_WORKSPACE": string(home.NewWorkspace(t)),
		"PROVIDER_KEY":    functest.Secret(),
	}
	g := functest.Golden{Instance: env.Instance(), Names: names}
	post := func(body string) functest.Event { return createRequest(nil).SendingText(body).As(home.Management) }
	withKey := func(members string) functest.Event {
		return post(`{"key":"` + names["PROVIDER_KEY"] + `","provider":"openai"` + members + `}`)
	}
	once := functest.Secret()
	full, err := os.ReadFile("testdata/full.request")
	testkit.Must(t, err)
	g.Play(t, "full", post(os.Expand(string(full), func(name string) string { return names[name] })))
	first := g.Instance.Invoke(t, withKey("").With("Idempotency-Key", once))
	replayed := g.Instance.Invoke(t, withKey("").With("Idempotency-Key", once))
	if replayed.Status != http.StatusCreated || replayed.Body != first.Body || replayed.Header["Idempotent-Replayed"] != "true" {
		t.Errorf("answered with %s, repeated with %d %v %s", first.Body, replayed.Status, replayed.Header, replayed.Body)
	}
	g.Play(t, "different-request", withKey(`,"disabled":false`).With("Idempotency-Key", once))
	g.Play(t, "invalid", post(`{"provider": "OpenAI", "name": 7, "workspace_id": "x", "allowed_modells": ["m"],
		"allowed_api_key_hashes": [], "is_byok_only": true, "is_fallback": true, "disabled": null}`).
		With("Content-Type", "text/plain").With("Idempotency-Key", ""))
	g.Play(t, "foreign", withKey(`,"workspace_id":"`+string(stranger.Workspace)+`","allowed_api_key_hashes":["`+
		names["KEY_HASH"]+`","`+string(auth.HashKey(stranger.Management))+`"]`))
}

// A copy of a request shares its place in the workspace. The same Idempotency-Key with
// another body, which may be larger, is no copy.
func TestAnotherBodyNeedsItsOwnRoom(t *testing.T) {
	env := functest.New(t, assemble)
	home, instance, key := env.NewTenant(t), env.Instance(), functest.Secret()
	access, control := testkit.Rows{DB: env.DB, Table: env.Engines.Tables.Access}, testkit.Rows{DB: env.DB, Table: env.Engines.Tables.Control}
	access.Set(t, testkit.Key("workspace#"+string(home.Workspace), "workspace"), "used", testkit.Number("99"))
	// The record is not seen, as if the requests came at the same time.
	want := func(status int, name string) {
		t.Helper()
		control.Delete(t, testkit.Key(string(byok.NewRequestID(string(auth.HashKey(home.Management)), "one"))))
		a := instance.Invoke(t, createRequest(map[string]any{"key": key, "provider": "openai", "name": name}).
			As(home.Management).With("Idempotency-Key", "one"))
		if a.Status != status {
			t.Fatalf("%d %s, want %d", a.Status, a.Body, status)
		}
	}
	want(http.StatusCreated, "one")
	want(http.StatusCreated, "one")
	want(http.StatusBadRequest, "another")
}
