package functest

import (
	"testing"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// Tenant is an account with its default workspace and a management key.
type Tenant struct {
	ID         ids.Account
	Workspace  ids.Workspace // its default
	Management string

	env *Env
}

// Tenant makes an account.
func (s *Env) Tenant(t testing.TB) Tenant {
	t.Helper()
	account, workspace, err := s.Registry.CreateAccount(t.Context(), "tenant")
	if err != nil {
		t.Fatal(err)
	}
	made := Tenant{ID: account, Workspace: workspace, env: s}
	made.Management = made.Key(t, auth.NewKey{Kind: auth.Management})
	return made
}

// Key makes an API key of the account and returns its token.
func (a Tenant) Key(t testing.TB, n auth.NewKey) string {
	t.Helper()
	n.Account, n.Name = a.ID, "a key"
	made, _, err := a.env.Registry.CreateKey(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return string(made.Reveal())
}

// Standard makes a standard key, bound to the workspace unless that is "".
func (a Tenant) Standard(t testing.TB, bound ids.Workspace) string {
	t.Helper()
	return a.Key(t, auth.NewKey{Kind: auth.Standard, Workspace: bound})
}

// Other makes another workspace of the account.
func (a Tenant) Other(t testing.TB) ids.Workspace {
	t.Helper()
	workspace, err := a.env.Registry.CreateWorkspace(t.Context(), a.ID, "other")
	if err != nil {
		t.Fatal(err)
	}
	return workspace
}

// Deleted makes a workspace of the account and deletes it.
func (a Tenant) Deleted(t testing.TB) ids.Workspace {
	t.Helper()
	workspace := a.Other(t)
	a.Delete(t, workspace)
	return workspace
}

// Delete deletes a workspace of the account.
func (a Tenant) Delete(t testing.TB, workspace ids.Workspace) {
	t.Helper()
	if err := a.env.Registry.DeleteWorkspace(t.Context(), a.ID, workspace); err != nil {
		t.Fatal(err)
	}
}
