package main

import (
	"net/http"
	"testing"

	"signalbox.dev/shared/byok"
)

// Envoy AI Gateway asks once a request, without a plan: Envoy Gateway's extAuth sends the
// method, the path behind its prefix, Authorization and the body. It takes the bare key in
// the header that credentialOverride reads, and the provider for its routes.
func TestOneAttemptInAnotherHeader(t *testing.T) {
	f := newFixture(t)
	bare := ""
	f.config.Providers["mistral"] = &aProvider{Host: "api.mistral.example", Header: "X-Aigw-Api-Key", Prefix: &bare}
	f.serve()
	ask := func() answer {
		return f.post("/open/v1/chat/completions", `{"model":"n","messages":[]}`, bearer(f.token)...)
	}
	ask().is(t, "without a credential", http.StatusForbidden, "no_step")
	stored := f.store("sk-first", byok.Settings{Provider: "mistral", Required: true})
	f.store("sk-second", byok.Settings{Provider: "mistral"})
	a := ask()
	a.isKey(t, "X-Aigw-Api-Key", "sk-first", "mistral", stored.ID, "own")
	if a.header.Get("Authorization") != "" {
		t.Error("the key is in Authorization too")
	}
}
