package auth_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"signalbox.dev/infra/test/cases"
	"signalbox.dev/shared/auth"
)

// TestCases plays the operator's changes of keys and workspaces with each fault of each call, and
// pairs of them beside each other.
func TestCases(t *testing.T) {
	var all []cases.Case
	for _, name := range []string{
		"check account", "create account", "create key", "create workspace", "delete key", "delete workspace", "disable key", "enable key", "find key",
		"find workspace", "list keys", "list workspace ids", "list workspaces", "raise counter", "set default", "set second", "suspend account", "suspend key",
	} {
		all = append(all, one(name))
	}
	for _, p := range []struct {
		name, beside string
		then         error   // the first one's result after the other one
		ends         []error // of the other one
	}{
		{"enable key", "delete key", auth.ErrNoKey, nil},
		{"disable key", "delete key", auth.ErrNoKey, nil},
		{"suspend key", "delete key", auth.ErrNoKey, nil},
		{"delete key", "delete key", auth.ErrNoKey, []error{auth.ErrNoKey}},
		{"delete key", "delete workspace", nil, nil},
		{"create key", "delete workspace", auth.ErrWorkspaceDeleted, nil},
		{"create key", "suspend account", auth.ErrSuspended, nil},
		{"enable key", "delete workspace", auth.ErrWorkspaceDeleted, nil},
		{"set default", "delete workspace", auth.ErrWorkspaceDeleted, nil},
		{"set second", "delete workspace", nil, nil},
		{"set second", "delete second", auth.ErrWorkspaceDeleted, nil},
		{"delete workspace", "create key", nil, []error{auth.ErrWorkspaceDeleted}},
		{"delete workspace", "enable key", nil, []error{auth.ErrWorkspaceDeleted}},
		{"delete workspace", "set default", nil, []error{auth.ErrWorkspaceDeleted}},
		{"delete workspace", "delete workspace", nil, nil},
	} {
		all = append(all, pair(p.name, p.beside, p.then, p.ends))
	}
	cases.Suite{Cases: all, Overlaps: []cases.Overlap{
		{Name: "keys and the deletion of their workspace", Reaches: []string{"create key: done", "create key: " + auth.ErrWorkspaceDeleted.Error(), "enable key: done"},
			Set: func(w *cases.World) ([]cases.Act, func([]cases.Done)) {
				s := set(w)
				acts := []cases.Act{act(w, s, "create key"), act(w, s, "enable key"), act(w, s, "set default"), act(w, s, "delete workspace")}
				return acts, func(done []cases.Done) { judge(w, done) }
			}},
	}}.Play(t)
}

func one(name string) cases.Case {
	return cases.Case{Name: name, Set: func(w *cases.World) cases.Play {
		return cases.Play{Act: act(w, set(w), name), Judge: func(done []cases.Done) { judge(w, done) }}
	}}
}

func pair(name, beside string, then error, ends []error) cases.Case {
	return cases.Case{Name: name + " beside " + beside, Set: func(w *cases.World) cases.Play {
		s := set(w)
		a, b := act(w, s, name), cases.Beside{Act: act(w, s, beside)}
		if a.NoMenu = true; name == beside {
			b.Act.Name = "the other"
		}
		if then != nil {
			b.Then = then.Error()
		}
		for _, err := range ends {
			b.Ends = append(b.Ends, err.Error())
		}
		return cases.Play{Act: a, Beside: []cases.Beside{b}, Judge: func(done []cases.Done) { judge(w, done) }}
	}}
}

func set(w *cases.World) situation {
	bound := w.Tenant.StandardKey(w.TB(), w.Tenant.Workspace)
	return situation{w.Tenant.ID, w.Tenant.Workspace, w.Tenant.NewWorkspace(w.TB()), auth.HashKey(bound), auth.HashKey(w.Tenant.Management), time.Now().UTC().Truncate(time.Second)}
}

// act makes the act of a command.
func act(w *cases.World, s situation, name string) cases.Act {
	all := commands(s)
	all["set default"] = func(ctx context.Context, r *auth.Registry) error {
		return r.SetDefaultWorkspace(ctx, s.account, s.workspace)
	}
	all["set second"] = func(ctx context.Context, r *auth.Registry) error {
		return r.SetDefaultWorkspace(ctx, s.account, s.second)
	}
	all["delete workspace"] = func(ctx context.Context, r *auth.Registry) error {
		return r.DeleteWorkspace(ctx, s.account, s.workspace)
	}
	all["delete second"] = func(ctx context.Context, r *auth.Registry) error { return r.DeleteWorkspace(ctx, s.account, s.second) }
	return w.Command(name, func(ctx context.Context, c cases.Clients) error { return all[name](ctx, c.Registry) },
		auth.ErrNoKey, auth.ErrWorkspaceDeleted, auth.ErrSuspended)
}

// judge requires, unless a command failed and was not repeated, that a key is in all its lists
// or in none, that a default workspace is live, and that no enabled key is bound to a deleted
// workspace.
func judge(w *cases.World, done []cases.Done) {
	if slices.ContainsFunc(done, func(d cases.Done) bool { return d.Result.Text == "failed" }) && !done[len(done)-1].Again {
		return
	}
	survey, err := auth.ReadSurvey(context.Background(), w.DB, w.Outputs.Access)
	if err != nil {
		w.Broken("stored", "the table cannot be read: %v", err)
		return
	}
	if len(survey.Missing)+len(survey.Stray)+len(survey.Unknown) > 0 {
		w.Broken("stored", "list entries are missing: %d, stray: %d, unknown: %d", len(survey.Missing), len(survey.Stray), len(survey.Unknown))
	}
	for _, account := range survey.Accounts {
		if account.Default != "" && !survey.Workspaces[account.Default].DeletedAt.IsZero() {
			w.Broken("stored", "the default workspace is deleted")
		}
	}
	for _, key := range survey.Keys {
		switch {
		case key.Damage != nil:
			w.Broken("stored", "a key is damaged: %v", key.Damage)
		case !key.Disabled && !survey.Workspaces[key.Workspace].DeletedAt.IsZero():
			w.Broken("stored", "a key of a deleted workspace is enabled")
		}
	}
}
