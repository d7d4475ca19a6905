package main

import (
	"net/http"
	"testing"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/seal"
)

func createRequest(body any) functest.Event {
	return functest.NewEvent(http.MethodPost, "/api/v1/byok").Sending(body)
}

// storedCredentials reads the credentials in the tenant's default workspace. It checks
// that each is complete: its seal opens at its own place and contains the key.
func storedCredentials(t testing.TB, env *functest.Env, tenant functest.Tenant, key string) []byok.Stored {
	t.Helper()
	rows, err := byok.ReadAll(t.Context(), env.DB, env.Engines.Tables.Credentials, tenant.ID, tenant.Workspace)
	testkit.Must(t, err)
	opener := seal.NewOpener(env.KMS, env.Engines.KeyARN)
	taken := map[int64]bool{}
	for _, r := range rows {
		opened, err := opener.Open(t.Context(), r.Sealed, r.Binding())
		if err != nil || string(opened.Reveal()) != key || taken[r.SortOrder] {
			t.Errorf("credential %+v opens as %q, %v; its sort_order is taken: %v", r, opened.Reveal(), err, taken[r.SortOrder])
		}
		taken[r.SortOrder] = true
	}
	return rows
}
