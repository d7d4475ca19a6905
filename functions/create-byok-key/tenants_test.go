package main

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
)

// resource is a workspace or the hash of an API key that a request names. Where
// the caller's account is its owner the request succeeds; else it has one issue.
type resource struct {
	name  string
	owner functest.Tenant // none, where no account may use it
	body  map[string]any
	issue string // its path
	group string // of those that are indistinguishable; "" where it is malformed
}

// TestTenants names every kind of workspace and of API key as every kind of
// caller.
func TestTenants(t *testing.T) {
	env := functest.New(t, assemble)
	home, stranger := env.NewTenant(t), env.NewTenant(t)
	instance, provider := env.Instance(), functest.Secret()
	for _, c := range functest.Callers(t, home, stranger, home.NewWorkspace(t)) {
		groups := map[string]*functest.Indistinguishable{"workspace": {}, "hash": {}}
		for _, r := range resources(t, home, stranger) {
			t.Run(c.Name+"/"+r.name, func(t *testing.T) {
				body := map[string]any{"key": provider, "provider": "openai"}
				maps.Copy(body, r.body)
				got := instance.Invoke(t, c.As(createRequest(body)))
				switch {
				case c.Reason != "":
					got.Refused(t, c.Reason)
				case !c.Manages:
					got.Is(t, http.StatusForbidden)
				case r.body == nil || r.owner.ID == c.Account:
					got.Is(t, http.StatusCreated)
				default:
					if got.Is(t, http.StatusBadRequest) && !slices.Equal(got.Issues, []string{r.issue}) {
						t.Errorf("issues at %q, want %q", got.Issues, r.issue)
					}
					if r.group != "" {
						groups[r.group].Check(t, "", got)
					}
				}
			})
		}
	}
	// Each of the two management keys created in its own account, and in no other.
	for tenant, want := range map[functest.Tenant]int{home: 2 + 3, stranger: 2 + 1} {
		got, err := byok.ReadAll(t.Context(), env.DB, env.Engines.Tables.Credentials, tenant.ID, tenant.Workspace)
		if err != nil || len(got) != want {
			t.Errorf("%d credentials in a default workspace, %v; want %d", len(got), err, want)
		}
	}
}

func resources(t *testing.T, home, stranger functest.Tenant) []resource {
	t.Helper()
	none := functest.Tenant{}
	workspace := func(name string, owner functest.Tenant, id any, group string) resource {
		return resource{name, owner, map[string]any{"workspace_id": id}, "/workspace_id", group}
	}
	key := func(name string, owner functest.Tenant, token, group string) resource {
		return resource{name, owner, map[string]any{"allowed_api_key_hashes": []any{auth.HashKey(token)}}, "/allowed_api_key_hashes/0", group}
	}
	malformed := key("malformed key", none, "", "")
	malformed.body = map[string]any{"allowed_api_key_hashes": []any{"ABC"}}
	return []resource{
		{name: "none named"},
		workspace("default workspace", home, home.Workspace, "workspace"),
		workspace("other workspace", home, home.NewWorkspace(t), "workspace"),
		workspace("another account's workspace", stranger, stranger.Workspace, "workspace"),
		workspace("deleted workspace", none, home.DeletedWorkspace(t), "workspace"),
		workspace("unknown workspace", none, "00000000-0000-4000-8000-000000000000", "workspace"),
		workspace("malformed workspace", none, "no-uuid", ""),
		workspace("empty workspace", none, "", ""),
		key("own key", home, home.Management, "hash"),
		key("disabled key", home, home.DisabledKey(t), "hash"),
		key("expired key", home, home.ExpiredKey(t), "hash"),
		key("another account's key", stranger, stranger.Management, "hash"),
		key("deleted key", none, home.DeletedKey(t), "hash"),
		key("unknown key", none, "an unknown token", "hash"),
		malformed,
	}
}
