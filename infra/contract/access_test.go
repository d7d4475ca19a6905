package contract_test

import (
	"testing"
	"time"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// keyKind is a kind of API key to make, built up by its methods.
type keyKind auth.NewKey

func managementKey() keyKind { return keyKind{Kind: auth.Management, Name: "management"} }

func standardKey() keyKind { return keyKind{Kind: auth.Standard, Name: "standard"} }

// expired makes it a key whose time is over.
func (k keyKind) expired() keyKind {
	k.ExpiresAt = time.Now().Add(-time.Minute)
	return k
}

// boundTo binds it to a workspace.
func (k keyKind) boundTo(workspace string) keyKind {
	k.Workspace = ids.Workspace(workspace)
	return k
}

func (p place) registry() *auth.Registry { return auth.NewRegistry(p.db, p.names.Access) }

// createAccount makes an account and its default workspace.
func (p place) createAccount(t *testing.T) (ids.Account, string) {
	t.Helper()
	account, workspace, err := p.registry().CreateAccount(t.Context(), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return account, string(workspace)
}

func (n tenant) createWorkspace(t *testing.T) string {
	t.Helper()
	workspace, err := n.registry().CreateWorkspace(t.Context(), n.account, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(workspace)
}

func (n tenant) deleteWorkspace(t *testing.T, workspace string) {
	t.Helper()
	if err := n.registry().DeleteWorkspace(t.Context(), n.account, ids.Workspace(workspace)); err != nil {
		t.Fatal(err)
	}
}

// key makes an API key and returns its token.
func (n tenant) key(t *testing.T, k keyKind) string {
	t.Helper()
	k.Account = n.account
	token, _, err := n.registry().CreateKey(t.Context(), auth.NewKey(k))
	if err != nil {
		t.Fatal(err)
	}
	return string(token.Reveal())
}

func (n tenant) disable(t *testing.T, token string) {
	t.Helper()
	if err := n.registry().DisableKey(t.Context(), n.account, auth.HashKey(token)); err != nil {
		t.Fatal(err)
	}
}

func (n tenant) remove(t *testing.T, token string) {
	t.Helper()
	if err := n.registry().DeleteKey(t.Context(), n.account, auth.HashKey(token)); err != nil {
		t.Fatal(err)
	}
}
