package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
)

// Every setting of a request is stored, listed and returned: a lost one would
// allow more than the caller meant. infra/admin tests the same of its own list.
func TestEverySettingIsKept(t *testing.T) {
	env := functest.New(t, assemble)
	tenant := env.NewTenant(t)
	manager := byok.NewManager(env.DB, env.Engines.Tables.Credentials)
	for i, without := range []string{"is_byok_only", "is_fallback"} { // they exclude each other
		want := testkit.SettingsByName(t, testkit.FilledSettings(t))
		want["provider"], want["allowed_api_key_hashes"] = "openai", []any{string(auth.HashKey(tenant.Management))}
		want[without] = false
		body := maps.Clone(want)
		body["key"] = functest.Secret()
		response := env.Instance().Invoke(t, functest.NewEvent(http.MethodPost, "/api/v1/byok").As(tenant.Management).Sending(body))
		var created struct{ Data map[string]any }
		if err := json.Unmarshal([]byte(response.Body), &created); err != nil || response.Status != http.StatusCreated {
			t.Fatal(response.Body, err)
		}
		listed, err := manager.List(t.Context(), tenant.Workspace)
		if err != nil || len(listed) != i+1 {
			t.Fatal(listed, err)
		}
		if diff := cmp.Diff(want, testkit.SettingsByName(t, listed[i].Settings)); diff != "" {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
		for name, value := range want {
			if diff := cmp.Diff(value, created.Data[name]); diff != "" {
				t.Errorf("%s in the 201 (-want +got):\n%s", name, diff)
			}
		}
	}
}
