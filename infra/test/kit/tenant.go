package kit

import (
	"testing"
	"time"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// Tenant is an account with its default workspace and a management key.
type Tenant struct {
	ID         ids.Account
	Workspace  ids.Workspace // its default
	Management string
	Registry   *auth.Registry
}

// NewTenant makes an account.
func NewTenant(t testing.TB, registry *auth.Registry) Tenant {
	t.Helper()
	account, workspace, err := registry.CreateAccount(t.Context(), "tenant")
	Must(t, err)
	made := Tenant{ID: account, Workspace: workspace, Registry: registry}
	made.Management = made.ManagementKey(t)
	return made
}

// NewKey makes an API key of the account and returns its token.
func (a Tenant) NewKey(t testing.TB, n auth.NewKey) string {
	t.Helper()
	n.Account, n.Name = a.ID, "a key"
	made, _, err := a.Registry.CreateKey(t.Context(), n)
	Must(t, err)
	return string(made.Reveal())
}

// ManagementKey makes a management key.
func (a Tenant) ManagementKey(t testing.TB) string {
	t.Helper()
	return a.NewKey(t, auth.NewKey{Kind: auth.Management})
}

// StandardKey makes a standard key, bound to the workspace unless that is "".
func (a Tenant) StandardKey(t testing.TB, bound ids.Workspace) string {
	t.Helper()
	return a.NewKey(t, auth.NewKey{Kind: auth.Standard, Workspace: bound})
}

// Disable disables an API key of the account.
func (a Tenant) Disable(t testing.TB, token string) {
	t.Helper()
	Must(t, a.Registry.DisableKey(t.Context(), a.ID, auth.HashKey(token)))
}

// DisabledKey makes a management key and disables it.
func (a Tenant) DisabledKey(t testing.TB) string {
	t.Helper()
	token := a.ManagementKey(t)
	a.Disable(t, token)
	return token
}

// ExpiredKey makes a management key that has expired.
func (a Tenant) ExpiredKey(t testing.TB) string {
	t.Helper()
	return a.NewKey(t, auth.NewKey{Kind: auth.Management, ExpiresAt: time.Now().Add(-time.Second)})
}

// NewWorkspace makes another workspace of the account.
func (a Tenant) NewWorkspace(t testing.TB) ids.Workspace {
	t.Helper()
	workspace, err := a.Registry.CreateWorkspace(t.Context(), a.ID, "other")
	Must(t, err)
	return workspace
}

// DeletedWorkspace makes a workspace of the account and deletes it.
func (a Tenant) DeletedWorkspace(t testing.TB) ids.Workspace {
	t.Helper()
	workspace := a.NewWorkspace(t)
	a.DeleteWorkspace(t, workspace)
	return workspace
}

// DeleteWorkspace deletes a workspace of the account.
func (a Tenant) DeleteWorkspace(t testing.TB, workspace ids.Workspace) {
	t.Helper()
	Must(t, a.Registry.DeleteWorkspace(t.Context(), a.ID, workspace))
}
