package functest

import (
	"testing"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// Tenant is an account with its default workspace and a management key.
type Tenant = testkit.Tenant

// NewTenant makes an account.
func (s *Env) NewTenant(t testing.TB) Tenant {
	t.Helper()
	return testkit.NewTenant(t, s.Registry)
}

// Caller is one kind of caller. Its fields determine its answers.
type Caller struct {
	Name string
	// Reason is the reason of its 401; "" if its key is valid.
	Reason string
	// Account is the one it belongs to, and Default that account's workspace.
	Account ids.Account
	Default ids.Workspace
	// Manages is true of a management key.
	Manages bool
	// Bound is the one workspace it reaches; "" if it reaches its whole account.
	Bound ids.Workspace
	// Sends are its Authorization headers.
	Sends []string
}

// As returns the event, sent by the caller. All callers' events have one id, because
// their answers are compared.
func (c Caller) As(e Event) Event {
	e.RequestID = "the same for all"
	if c.Sends == nil {
		return e
	}
	return e.With("Authorization", c.Sends...)
}

// Reaches reports whether the caller may reach a live workspace of the account.
func (c Caller) Reaches(account ids.Account, w ids.Workspace) bool {
	return c.Account == account && (c.Bound == "" || c.Bound == w)
}

// Callers returns all kinds of callers for resources of the account home; other is its
// second workspace.
func Callers(t testing.TB, home, stranger Tenant, other ids.Workspace) []Caller {
	t.Helper()
	refused := func(name string, reason auth.Reason, sends ...string) Caller {
		return Caller{Name: name, Reason: string(reason), Sends: sends}
	}
	of := func(a Tenant, name string, n auth.NewKey) Caller {
		return Caller{
			Name: name, Account: a.ID, Default: a.Workspace, Manages: n.Kind == auth.Management, Bound: n.Workspace,
			Sends: []string{"Bearer " + a.NewKey(t, n)},
		}
	}
	standard, management := auth.NewKey{Kind: auth.Standard}, auth.NewKey{Kind: auth.Management}
	bound := func(w ids.Workspace) auth.NewKey { return auth.NewKey{Kind: auth.Standard, Workspace: w} }
	return []Caller{
		refused("none", auth.Missing),
		refused("malformed", auth.Malformed, "Bearer "+testkit.Marker+" "+testkit.Marker),
		refused("of another scheme", auth.Malformed, "Basic "+testkit.Marker),
		refused("two at once", auth.Malformed, "Bearer "+home.Management, "Bearer "+home.Management),
		refused("unknown", auth.UnknownKey, "Bearer "+testkit.Marker+string(home.ID)),
		refused("deleted", auth.UnknownKey, "Bearer "+home.DeletedKey(t)),
		refused("disabled", auth.Disabled, "Bearer "+home.DisabledKey(t)),
		refused("expired", auth.Expired, "Bearer "+home.ExpiredKey(t)),
		of(home, "standard", standard),
		of(home, "bound here", bound(home.Workspace)),
		of(home, "bound elsewhere", bound(other)),
		of(home, "management", management),
		of(stranger, "stranger's management", management),
		of(stranger, "stranger's standard", standard),
		of(stranger, "stranger's bound", bound(stranger.Workspace)),
	}
}
