package auth_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/test/cases"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// TestCases plays the operator's changes of keys and workspaces with each fault of each call, and
// pairs of them at the same time.
func TestCases(t *testing.T) {
	var all []cases.Case
	for _, name := range slices.Sorted(maps.Keys(commands(situation{}))) {
		all = append(all, one(name))
	}
	for _, p := range []struct {
		name, other string
		after       error   // the first one's result after the other one
		own         []error // of the other one
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
		{"delete second", "set second", nil, []error{auth.ErrWorkspaceDeleted}},
		{"delete workspace", "delete workspace", nil, nil},
	} {
		all = append(all, pair(p.name, p.other, p.after, p.own))
	}
	cases.Suite{Cases: all, Overlaps: []cases.Overlap{
		{Name: "keys and the deletion of their workspace", Reaches: []string{"create key: done", "create key: " + auth.ErrWorkspaceDeleted.Error(), "enable key: done"},
			SetUp: func(env *cases.Environment) ([]cases.Operation, func([]cases.Outcome)) {
				s := set(env)
				operations := []cases.Operation{operation(env, s, "create key"), operation(env, s, "enable key"), operation(env, s, "set default"), operation(env, s, "delete workspace")}
				return operations, func(outcomes []cases.Outcome) { judge(env, outcomes) }
			}},
	}}.Run(t)
}

func one(name string) cases.Case {
	return cases.Case{Name: name, SetUp: func(env *cases.Environment) cases.Scenario {
		return cases.Scenario{Operation: operation(env, set(env), name), Judge: func(outcomes []cases.Outcome) { judge(env, outcomes) }}
	}}
}

func pair(name, other string, after error, own []error) cases.Case {
	return cases.Case{Name: name + " beside " + other, SetUp: func(env *cases.Environment) cases.Scenario {
		s := set(env)
		op, b := operation(env, s, name), cases.Concurrent{Operation: operation(env, s, other)}
		if op.ConcurrentOnly = true; name == other {
			b.Operation.Name = "the other"
		}
		if after != nil {
			b.AfterConcurrent = after.Error()
		}
		for _, err := range own {
			b.OwnOutcomes = append(b.OwnOutcomes, err.Error())
		}
		return cases.Scenario{Operation: op, Concurrent: []cases.Concurrent{b}, Judge: func(outcomes []cases.Outcome) { judge(env, outcomes) }}
	}}
}

func set(env *cases.Environment) situation {
	return cases.Prepared(env, func() situation {
		bound, now, rows := env.Tenant.StandardKey(env.TB(), env.Tenant.Workspace), time.Now().UTC().Truncate(time.Second), env.Rows(env.Outputs.Access)
		second := env.Tenant.NewWorkspace(env.TB())
		for _, row := range rows.All(env.TB()) {
			if row["created_at"] != nil { // all are as old on a slow machine, too
				rows.Set(env.TB(), row, "created_at", kit.Number(fmt.Sprint(now.Unix())))
			}
		}
		return situation{env.Tenant.ID, env.Tenant.Workspace, second, auth.HashKey(bound), auth.HashKey(env.Tenant.Management), now}
	})
}

// operation makes the operation of a command.
func operation(env *cases.Environment, s situation, name string) cases.Operation {
	run := commands(s)[name]
	return env.Command(name, func(ctx context.Context, c cases.Clients) error { return run(ctx, c.Registry) },
		auth.ErrNoKey, auth.ErrWorkspaceDeleted, auth.ErrSuspended)
}

// judge requires, unless a command failed and was not repeated, that a key is in all its lists
// or in none, that a default workspace is live, and that no enabled key is bound to a deleted
// workspace.
func judge(env *cases.Environment, outcomes []cases.Outcome) {
	if slices.ContainsFunc(outcomes, func(o cases.Outcome) bool { return o.Result.Text == "failed" }) && !outcomes[len(outcomes)-1].Again {
		return
	}
	survey, err := auth.ReadSurvey(context.Background(), env.DB, env.Outputs.Access)
	if err != nil {
		env.Broken("stored", "the table cannot be read: %v", err)
		return
	}
	if len(survey.Missing)+len(survey.Stray)+len(survey.Unknown) > 0 {
		env.Broken("stored", "list entries are missing: %d, stray: %d, unknown: %d", len(survey.Missing), len(survey.Stray), len(survey.Unknown))
	}
	for _, account := range survey.Accounts {
		if account.Default != "" && !survey.Workspaces[account.Default].DeletedAt.IsZero() {
			env.Broken("stored", "the default workspace is deleted")
		}
	}
	for _, key := range survey.Keys {
		switch {
		case key.Damage != nil:
			env.Broken("stored", "a key is damaged: %v", key.Damage)
		case !key.Disabled && !survey.Workspaces[key.Workspace].DeletedAt.IsZero():
			env.Broken("stored", "a key of a deleted workspace is enabled")
		}
	}
}

// situation is a key that is bound to the default workspace, and a second workspace.
type situation struct {
	account           ids.Account
	workspace, second ids.Workspace
	key, management   ids.KeyHash
	now               time.Time // the time at which all of it is made
}

// commands are the operator's commands, by their names.
func commands(s situation) map[string]func(context.Context, *auth.Registry) error {
	newKey := auth.NewKey{Account: s.account, Workspace: s.workspace, Kind: auth.Standard, Name: "k"}
	made := func(account ids.Account, id ids.Workspace, name string, at time.Time) auth.Workspace {
		return auth.Workspace{ID: id, Account: account, Name: name, Default: name == "default", CreatedAt: at, Next: map[string]int64{}, HasMade: true}
	}
	first, second := made(s.account, s.workspace, "default", s.now), made(s.account, s.second, "other", s.now)
	workspaces := []auth.Workspace{first, second}
	slices.SortFunc(workspaces, func(a, b auth.Workspace) int { return cmp.Compare(a.ID, b.ID) }) // they are as old
	keys := []auth.Key{
		{Hash: s.key, Account: s.account, Workspace: s.workspace, Kind: auth.Standard, Name: "a key", CreatedAt: s.now},
		{Hash: s.management, Account: s.account, Kind: auth.Management, Name: "a key", CreatedAt: s.now},
	}
	slices.SortFunc(keys, func(a, b auth.Key) int { return cmp.Compare(a.Hash, b.Hash) })
	return map[string]func(context.Context, *auth.Registry) error{
		"create account": func(ctx context.Context, r *auth.Registry) error {
			account, workspace, err := r.CreateAccount(ctx, "Another")
			if err != nil {
				return err
			}
			found, err := r.FindWorkspace(ctx, account, "")
			return is(made(account, workspace, "default", found.CreatedAt), found, err)
		},
		"check account": func(ctx context.Context, r *auth.Registry) error { return r.CheckAccount(ctx, s.account) },
		"raise counter": func(ctx context.Context, r *auth.Registry) error {
			return r.RaiseCounter(ctx, s.workspace, "openai", 3)
		},
		"create workspace": func(ctx context.Context, r *auth.Registry) error {
			id, err := r.CreateWorkspace(ctx, s.account, "w")
			if err != nil {
				return err
			}
			found, err := r.FindWorkspace(ctx, s.account, id)
			return is(made(s.account, id, "w", found.CreatedAt), found, err)
		},
		"list workspaces": func(ctx context.Context, r *auth.Registry) error {
			got, err := r.ListWorkspaces(ctx, s.account)
			return is(workspaces, got, err)
		},
		"list workspace ids": func(ctx context.Context, r *auth.Registry) error {
			got, err := r.ListWorkspaceIDs(ctx, s.account)
			return is([]ids.Workspace{workspaces[0].ID, workspaces[1].ID}, got, err)
		},
		"find workspace": func(ctx context.Context, r *auth.Registry) error {
			got, err := r.FindWorkspace(ctx, s.account, s.workspace)
			return is(first, got, err)
		},
		"create key": func(ctx context.Context, r *auth.Registry) error {
			_, key, err := r.CreateKey(ctx, newKey)
			return is(auth.Key{Hash: key.Hash, Account: s.account, Workspace: s.workspace, Kind: auth.Standard, Name: "k", CreatedAt: key.CreatedAt}, key, err)
		},
		"list keys": func(ctx context.Context, r *auth.Registry) error {
			got, err := r.ListKeys(ctx, s.account)
			return is(keys, got, err)
		},
		"count keys": func(ctx context.Context, r *auth.Registry) error {
			got, err := r.CountKeys(ctx, s.account)
			return is(len(keys), got, err)
		},
		"find account": func(ctx context.Context, r *auth.Registry) error {
			got, err := r.FindAccount(ctx, s.account)
			return is(auth.Account{ID: s.account, Name: got.Name, Default: s.workspace, CreatedAt: s.now}, got, err)
		},
		"find key": func(ctx context.Context, r *auth.Registry) error {
			got, err := r.FindKey(ctx, s.key)
			return is(auth.Key{Hash: s.key, Account: s.account, Workspace: s.workspace, Kind: auth.Standard, Name: "a key", CreatedAt: s.now}, got, err)
		},
		"disable key": func(ctx context.Context, r *auth.Registry) error { return r.DisableKey(ctx, s.account, s.key) },
		"enable key":  func(ctx context.Context, r *auth.Registry) error { return r.EnableKey(ctx, s.account, s.key) },
		"delete key":  func(ctx context.Context, r *auth.Registry) error { return r.DeleteKey(ctx, s.account, s.key) },
		"suspend key": func(ctx context.Context, r *auth.Registry) error { return r.SuspendKey(ctx, s.account, s.key, true) },
		"suspend account": func(ctx context.Context, r *auth.Registry) error {
			return r.SuspendAccount(ctx, s.account, true)
		},
		"set default": func(ctx context.Context, r *auth.Registry) error {
			return r.SetDefaultWorkspace(ctx, s.account, s.workspace)
		},
		"set second": func(ctx context.Context, r *auth.Registry) error {
			return r.SetDefaultWorkspace(ctx, s.account, s.second)
		},
		"delete workspace": func(ctx context.Context, r *auth.Registry) error {
			return r.DeleteWorkspace(ctx, s.account, s.workspace)
		},
		"delete second": func(ctx context.Context, r *auth.Registry) error { return r.DeleteWorkspace(ctx, s.account, s.second) },
	}
}

// is returns the error, or a difference of the results.
func is[T any](want, got T, err error) error {
	if err == nil && !reflect.DeepEqual(want, got) {
		return fmt.Errorf("it returned %v, want %v", got, want)
	}
	return err
}

// The registry refuses invalid names and keys, and ids that do not exist or belong to
// another account. It then writes nothing.
func TestRefusals(t *testing.T) { cases.OnModel(t, "", 0, refusals) }

func refusals(env *cases.Environment) {
	ctx, t, r, own := env.TB().Context(), env.TB(), env.Registry, env.Tenant
	stranger := env.Stranger()
	deleted, second := own.NewWorkspace(t), own.NewWorkspace(t)
	stranded := auth.HashKey(own.StandardKey(t, deleted))
	own.DeleteWorkspace(t, deleted)
	_, err := r.CreateWorkspace(ctx, own.ID, strings.Repeat("é", 255))
	kit.Must(t, err)
	own.StandardKey(t, second)
	rows := env.Rows(env.Outputs.Access)
	before := rows.All(t)
	nobody, nowhere, unknown := ids.New[ids.Account](), ids.New[ids.Workspace](), auth.HashKey("nobody's")
	wants := func(want error, errs ...error) {
		t.Helper()
		for i, err := range errs {
			if !errors.Is(err, want) {
				t.Errorf("%d: %v, want %v", i, err, want)
			}
		}
	}
	create := func(n auth.NewKey) error {
		_, _, err := r.CreateKey(ctx, n)
		return err
	}
	newKey := func(account ids.Account, workspace ids.Workspace) error {
		return create(auth.NewKey{Account: account, Workspace: workspace, Kind: auth.Standard, Name: "k"})
	}
	named := func(name string) []error {
		_, _, accountErr := r.CreateAccount(ctx, name)
		_, workspaceErr := r.CreateWorkspace(ctx, own.ID, name)
		return []error{accountErr, workspaceErr, create(auth.NewKey{Account: own.ID, Kind: auth.Standard, Name: name})}
	}
	for _, name := range []string{"", "\xff", strings.Repeat("é", 256)} {
		wants(auth.ErrInvalid, named(name)...)
	}
	wants(auth.ErrInvalid,
		create(auth.NewKey{Account: own.ID, Kind: "other", Name: "k"}), create(auth.NewKey{Account: own.ID, Kind: auth.Management, Workspace: second, Name: "k"}),
		create(auth.NewKey{Account: own.ID, Kind: auth.Standard, Name: "k", ExpiresAt: time.Unix(0, 0)}))
	_, workspaceErr := r.CreateWorkspace(ctx, nobody, "w")
	_, listErr := r.ListWorkspaces(ctx, nobody)
	_, idsErr := r.ListWorkspaceIDs(ctx, nobody)
	_, accountErr := r.FindAccount(ctx, nobody)
	_, findErr := r.FindWorkspace(ctx, nobody, second)
	wants(auth.ErrNoAccount, r.CheckAccount(ctx, nobody), workspaceErr, listErr, idsErr, accountErr, findErr, newKey(nobody, ""), r.DeleteWorkspace(ctx, nobody, second))
	for _, workspace := range []ids.Workspace{nowhere, stranger.Workspace} {
		_, err := r.FindWorkspace(ctx, own.ID, workspace)
		wants(auth.ErrNoWorkspace, err, newKey(own.ID, workspace), r.SetDefaultWorkspace(ctx, own.ID, workspace), r.DeleteWorkspace(ctx, own.ID, workspace))
	}
	wants(auth.ErrWorkspaceDeleted, newKey(own.ID, deleted), r.SetDefaultWorkspace(ctx, own.ID, deleted), r.EnableKey(ctx, own.ID, stranded))
	wants(nil, r.DeleteWorkspace(ctx, own.ID, deleted), r.RaiseCounter(ctx, nowhere, "openai", 1))
	for _, hash := range []ids.KeyHash{unknown, auth.HashKey(stranger.Management)} {
		wants(auth.ErrNoKey, r.DisableKey(ctx, own.ID, hash), r.EnableKey(ctx, own.ID, hash), r.DeleteKey(ctx, own.ID, hash), r.SuspendKey(ctx, own.ID, hash, true))
	}
	kit.Must(t, r.SuspendAccount(ctx, own.ID, true))
	wants(auth.ErrSuspended, newKey(own.ID, ""), newKey(own.ID, second))
	kit.Must(t, r.SuspendAccount(ctx, own.ID, false))
	wants(auth.ErrNoAccount, r.SuspendAccount(ctx, nobody, true))
	_, err = r.FindKey(ctx, unknown)
	wants(auth.ErrNoKey, err)
	wants(auth.ErrNeedless, r.ClearDefault(ctx, own.ID, own.Workspace), r.ForgetMade(ctx, nowhere))
	if after := rows.All(t); !reflect.DeepEqual(before, after) {
		t.Errorf("a refused command changed %v to %v", before, after)
	}
}
