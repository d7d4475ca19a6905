package main

import (
	"net/http"
	"testing"

	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/ids"
)

// resource is a file, its place in storage, and its name in a request.
type resource struct {
	name   string
	stored ids.Workspace // "" where there is no file
	named  ids.Workspace // "" where the request names none
	file   ids.File      // "" for its id
}

// TestTenants asks for the deletion of every kind of file as every kind of caller.
func TestTenants(t *testing.T) {
	env := newEnv(t, "")
	home, stranger := env.NewTenant(t), env.NewTenant(t)
	other, deleted := home.NewWorkspace(t), home.DeletedWorkspace(t)
	accounts := map[ids.Workspace]ids.Account{home.Workspace: home.ID, other: home.ID, stranger.Workspace: stranger.ID}
	resources := []resource{
		{name: "in the default workspace", stored: home.Workspace, named: home.Workspace},
		{name: "in the default workspace, unnamed", stored: home.Workspace},
		{name: "in the other workspace", stored: other, named: other},
		{name: "in the other workspace, unnamed", stored: other},
		{name: "in the other workspace, the default named", stored: other, named: home.Workspace},
		{name: "another account's", stored: stranger.Workspace, named: stranger.Workspace},
		{name: "another account's, unnamed", stored: stranger.Workspace},
		{name: "another account's, the default named", stored: stranger.Workspace, named: home.Workspace},
		{name: "in a deleted workspace", stored: deleted, named: deleted},
		{name: "unknown", named: home.Workspace},
		{name: "malformed", stored: home.Workspace, named: home.Workspace, file: "file_%2e%2e"},
		{name: "in an unknown workspace", named: ids.New[ids.Workspace]()},
		{name: "in a malformed workspace", stored: home.Workspace, named: "{" + home.Workspace + "}"},
	}
	instance := env.Instance()
	for _, caller := range functest.Callers(t, home, stranger, other) {
		var absences functest.Indistinguishable
		for _, r := range resources {
			t.Run(caller.Name+"/"+r.name, func(t *testing.T) {
				file := ids.NewFile()
				if r.stored != "" {
					put(t, env, r.stored, file)
				}
				if r.file == "" {
					r.file = file
				}
				e, want := caller.As(deleteRequest(r.named, r.file)), 1
				got := instance.Invoke(t, e)
				if caller.Reason != "" {
					got.Refused(t, caller.Reason)
				} else {
					may, group := r.mayDelete(caller, file, accounts)
					if may {
						got.Is(t, http.StatusOK)
						got, want = instance.Invoke(t, e), 0 // now it does not exist
					}
					if got.Is(t, http.StatusNotFound) {
						absences.Check(t, group, got)
					}
				}
				if r.stored != "" && left(t, env, r.stored, file) != want {
					t.Errorf("%d versions are left, want %d", left(t, env, r.stored, file), want)
				}
			})
		}
	}
}

// mayDelete reports whether the caller's request deletes the file. It also returns the
// group of resources that the same calls look up.
func (r resource) mayDelete(c functest.Caller, file ids.File, accounts map[ids.Workspace]ids.Account) (may bool, group string) {
	workspace, ok := ids.Parse[ids.Workspace](string(r.named))
	group = "named"
	if r.named == "" {
		ok, group = true, "unnamed"
		if workspace = c.Bound; workspace == "" {
			workspace = c.Default
		}
	}
	switch {
	case !ok || r.file != file:
		return false, "malformed"
	case !c.Reaches(accounts[workspace], workspace):
		return false, "out of reach" // where no file is looked for
	}
	return r.stored == workspace, group
}
