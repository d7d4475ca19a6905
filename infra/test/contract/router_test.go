package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/routing"
)

// router reads the server's stack as the platform's router does.
func (s server) router(t *testing.T) *routing.Reader {
	t.Helper()
	reader, err := routing.NewReader(s.DynamoDB, s.KMS, routing.Config{
		AccessTable: s.Access, CredentialsTable: s.Credentials, SealingKeyARNs: []string{s.SealingKey},
	})
	kit.Must(t, err)
	t.Cleanup(reader.Close)
	return reader
}

// A router opens the key that was posted to the API, byte for byte.
func TestARouterSendsTheKeyThatWasPosted(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	router := n.router(t)
	unbound, err := auth.ParseBearer([]string{"Bearer " + n.standard})
	kit.Must(t, err)
	unboundReading, err := router.Read(t.Context(), unbound.Hash(), routing.Request{Model: "m", Providers: []string{"openai"}})
	if err != nil || unboundReading.Workspace != n.Workspace {
		t.Errorf("an unbound key: %+v, %v", unboundReading, err)
	}
	for name, posted := range map[string]string{
		"a token":           providerKey,
		"a service account": "{\n  \"type\": \"service_account\",\n  \"private_key\": \"-----BEGIN\\n" + kit.Marker + "\\n-----END\\n\"\n}\n",
		"any text":          " \t" + kit.Marker + "\r\n\u2028 \u00e9\U0001f511\"\\ ",
		"the longest":       strings.Repeat("k", 32768-len(kit.Marker)) + kit.Marker,
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(posted)
			kit.Must(t, err)
			workspace, err := n.Registry.CreateWorkspace(t.Context(), n.ID, t.Name())
			kit.Must(t, err)
			created := post(strings.TrimSuffix(keyBody(string(text)), "}") + `,"is_byok_only":true,"workspace_id":"` + string(workspace) + `"}`).As(n.management).Do(t).Created(t)
			bearer, err := auth.ParseBearer([]string{"Bearer " + n.StandardKey(t, workspace)})
			kit.Must(t, err)
			reading, err := router.Read(t.Context(), bearer.Hash(), routing.Request{Model: "m", Providers: []string{"openai"}})
			if err != nil || len(reading.Steps) != 1 || string(reading.Steps[0].Credential) != created.ID {
				t.Fatalf("planned %+v, %v", reading, err)
			}
			opened, err := reading.Open(t.Context(), reading.Steps[0])
			kit.Must(t, err)
			if string(opened.Reveal()) != posted {
				t.Errorf("opened %d bytes, not the %d that were posted", len(opened.Reveal()), len(posted))
			}
			opened.Wipe()
		})
	}
}
