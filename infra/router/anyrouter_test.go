package main

import (
	"net/http"
	"testing"

	"signalbox.dev/shared/byok"
)

// Agent Router asks once a request, without a plan: Envoy Gateway's extAuth sends the
// method, the path behind its prefix, Authorization and the body. It takes the bare key in
// the header that credentialOverride reads, and the provider for its routes.
func TestOneAttemptInAnotherHeader(t *testing.T) {
	f := newFixture(t)
	ask := func() answer {
		return f.post("/open/v1/chat/completions", `{"model":"o","messages":[]}`, bearer(f.token)...)
	}
	ask().is(t, "without a credential", http.StatusForbidden, "no_step")
	stored := f.store("sk-first", byok.Settings{Provider: "groq", Required: true})
	f.store("sk-second", byok.Settings{Provider: "groq"})
	a := ask()
	a.isKey(t, "X-Aigw-Api-Key", "sk-first", "groq", stored.ID, "own")
	if a.header.Get("Authorization") != "" {
		t.Error("the key is in Authorization too")
	}
}
