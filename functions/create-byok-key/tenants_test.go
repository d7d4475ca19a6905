package main

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/auth"
)

// resource is what a request names beside its key: a workspace or the hash of
// an API key. Where the caller's account is the owner it is taken; else the
// issue at the path says that it is not.
type resource struct {
	name  string
	owner functest.Tenant // none, where nobody may use it
	body  map[string]any
	issue string
	group string // of those that cannot be told apart; "" where by itself it is wrong
}

// TestTenants names every kind of workspace and of API key as every kind of
// caller.
func TestTenants(t *testing.T) {
	v := &vault{functest.New(t, assemble)}
	home, stranger := v.Tenant(t), v.Tenant(t)
	other := home.Other(t)
	f, key := v.Instance(), functest.Secret()
	everything := slices.Concat(everyWorkspace(t, home, stranger), everyHash(t, v, home, stranger))
	for _, c := range functest.Callers(t, home, stranger, other) {
		groups := map[string]*functest.Indistinguishable{"workspace": {}, "hash": {}}
		for _, r := range everything {
			t.Run(c.Name+"/"+r.name, func(t *testing.T) {
				body := map[string]any{"key": key, "provider": "openai"}
				for member, value := range r.body {
					body[member] = value
				}
				e := c.As(functest.NewEvent(http.MethodPost, "/api/v1/byok").Sending(body))
				e.RequestID = "the same for all"
				got := f.Invoke(t, e)
				switch {
				case !c.LetIn(t, got):
				case !c.Manages:
					got.Is(t, http.StatusForbidden)
				case r.name == "none named":
					got.Is(t, http.StatusCreated)
				case r.owner.ID != c.Account:
					if got.Is(t, http.StatusBadRequest) && !slices.Equal(got.Issues(t), []string{r.issue}) {
						t.Errorf("issues at %q, want %q", got.Issues(t), r.issue)
					}
					if r.group != "" {
						groups[r.group].Alike(t, "", got)
					}
				default:
					got.Is(t, http.StatusCreated)
				}
			})
		}
	}
	// Each of the two management keys took its own, and none of anybody else's.
	own, foreign := len(v.stored(t, home.Workspace, key)), len(v.stored(t, stranger.Workspace, key))
	if want := 2 + 3; own != want {
		t.Errorf("%d credentials in the account's default workspace, want %d", own, want)
	}
	if want := 2 + 1; foreign != want {
		t.Errorf("%d credentials in the stranger's, want %d", foreign, want)
	}
}

func everyWorkspace(t *testing.T, home, stranger functest.Tenant) []resource {
	t.Helper()
	at := func(name string, owner functest.Tenant, id any, group string) resource {
		return resource{name, owner, map[string]any{"workspace_id": id}, "/workspace_id", group}
	}
	nobody := functest.Tenant{}
	return []resource{
		{name: "none named"},
		at("default workspace", home, home.Workspace, "workspace"),
		at("other workspace", home, home.Other(t), "workspace"),
		at("another account's workspace", stranger, stranger.Workspace, "workspace"),
		at("deleted workspace", nobody, home.Deleted(t), "workspace"),
		at("unknown workspace", nobody, "00000000-0000-4000-8000-000000000000", "workspace"),
		at("malformed workspace", nobody, "no-uuid", ""),
		at("empty workspace", nobody, "", ""),
	}
}

func everyHash(t *testing.T, v *vault, home, stranger functest.Tenant) []resource {
	t.Helper()
	at := func(name string, owner functest.Tenant, hash auth.KeyHash, group string) resource {
		return resource{name, owner, map[string]any{"allowed_api_key_hashes": []any{hash}}, "/allowed_api_key_hashes/0", group}
	}
	hashOf := func(a functest.Tenant, n auth.NewKey) auth.KeyHash { return auth.HashKey(a.Key(t, n)) }
	disabled, deleted := hashOf(home, auth.NewKey{Kind: auth.Standard}), hashOf(home, auth.NewKey{Kind: auth.Standard})
	if err := v.Registry.DisableKey(t.Context(), home.ID, disabled); err != nil {
		t.Fatal(err)
	}
	if err := v.Registry.DeleteKey(t.Context(), home.ID, deleted); err != nil {
		t.Fatal(err)
	}
	expired := hashOf(home, auth.NewKey{Kind: auth.Standard, ExpiresAt: time.Now().Add(-time.Hour)})
	nobody := functest.Tenant{}
	return []resource{
		at("own key", home, auth.HashKey(home.Management), "hash"),
		at("disabled key", home, disabled, "hash"),
		at("expired key", home, expired, "hash"),
		at("another account's key", stranger, hashOf(stranger, auth.NewKey{Kind: auth.Management}), "hash"),
		at("deleted key", nobody, deleted, "hash"),
		at("unknown key", nobody, auth.HashKey("nobody's"), "hash"),
		at("malformed key", nobody, "ABC", ""),
	}
}
