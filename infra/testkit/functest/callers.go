package functest

import (
	"net/http"
	"testing"
	"time"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// Caller is one kind of caller: what it is decides all that it is answered.
type Caller struct {
	Name string
	// Reason is that of its 401; "" where its key lets it in.
	Reason string
	// Account is the one it belongs to, and Default that account's workspace.
	Account ids.Account
	Default ids.Workspace
	// Manages is true of a management key.
	Manages bool
	// Bound is the one workspace it reaches; "" where it reaches all of its account.
	Bound ids.Workspace
	// Sends are its Authorization headers.
	Sends []string
}

// As is the event, sent by the caller.
func (c Caller) As(e Event) Event {
	if c.Sends == nil {
		return e
	}
	return e.With("Authorization", c.Sends...)
}

// Reaches reports whether the caller may reach a live workspace of the account.
func (c Caller) Reaches(account ids.Account, w ids.Workspace) bool {
	return c.Account == account && (c.Bound == "" || c.Bound == w)
}

// Callers are all kinds of callers, seen from the account whose resources are
// asked for: other is its second workspace, and the stranger's account is not it.
func Callers(t testing.TB, home, stranger Tenant, other ids.Workspace) []Caller {
	t.Helper()
	refused := func(name string, reason auth.Reason, sends ...string) Caller {
		return Caller{Name: name, Reason: string(reason), Sends: sends}
	}
	of := func(a Tenant, name string, n auth.NewKey) Caller {
		return Caller{
			Name: name, Account: a.ID, Default: a.Workspace, Manages: n.Kind == auth.Management, Bound: n.Workspace,
			Sends: []string{"Bearer " + a.Key(t, n)},
		}
	}
	standard, management := auth.NewKey{Kind: auth.Standard}, auth.NewKey{Kind: auth.Management}
	bound := func(w ids.Workspace) auth.NewKey { return auth.NewKey{Kind: auth.Standard, Workspace: w} }
	expired := management
	expired.ExpiresAt = time.Now().Add(-time.Second)
	disabled := home.Key(t, management)
	if err := home.env.Registry.DisableKey(t.Context(), home.ID, auth.HashKey(disabled)); err != nil {
		t.Fatal(err)
	}
	deleted := home.Key(t, management)
	if err := home.env.Registry.DeleteKey(t.Context(), home.ID, auth.HashKey(deleted)); err != nil {
		t.Fatal(err)
	}
	return []Caller{
		refused("none", auth.Missing),
		refused("malformed", auth.Malformed, "Bearer "+Marker+" "+Marker),
		refused("of another scheme", auth.Malformed, "Basic "+Marker),
		refused("two at once", auth.Malformed, "Bearer "+home.Management, "Bearer "+home.Management),
		refused("unknown", auth.UnknownKey, "Bearer "+Marker+string(home.ID)),
		refused("deleted", auth.UnknownKey, "Bearer "+deleted),
		refused("disabled", auth.Disabled, "Bearer "+disabled),
		refused("expired", auth.Expired, "Bearer "+home.Key(t, expired)),
		of(home, "standard", standard),
		of(home, "bound here", bound(home.Workspace)),
		of(home, "bound elsewhere", bound(other)),
		of(home, "management", management),
		of(stranger, "stranger's management", management),
		of(stranger, "stranger's standard", standard),
		of(stranger, "stranger's bound", bound(stranger.Workspace)),
	}
}

// LetIn checks the answer to a caller who is not let in; ok is true for others.
func (c Caller) LetIn(t testing.TB, a Answer) (ok bool) {
	t.Helper()
	if c.Reason == "" {
		return true
	}
	a.Refused(t, c.Reason)
	return false
}

// Refused checks that the answer is a 401 for that reason.
func (a Answer) Refused(t testing.TB, reason string) {
	t.Helper()
	if a.Is(t, http.StatusUnauthorized) && a.Reason(t) != reason {
		t.Errorf("reason %s, want %s", a.Reason(t), reason)
	}
}

// Is checks the status.
func (a Answer) Is(t testing.TB, status int) bool {
	t.Helper()
	if a.Status != status {
		t.Errorf("status %d, want %d: %s", a.Status, status, a.Body)
	}
	return a.Status == status
}
