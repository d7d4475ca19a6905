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

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/sim"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// TestSimulation runs the operator's commands with every fault of every call, and runs
// pairs of commands in every order of their calls.
func TestSimulation(t *testing.T) {
	names := slices.Collect(maps.Keys(commands(situation{})))
	names = append(names, "set default", "set second", "delete workspace", "delete second", "repair")
	slices.Sort(names)
	var alone []sim.Scenario
	for _, name := range names {
		alone = append(alone, together(name))
	}
	sim.Suite{
		Alone: append(alone, sim.Scenario{Name: "refused commands", Set: askRegistry}),
		Pairs: []sim.Scenario{
			together("enable key", "delete key").Reaches(refused("enable key", auth.ErrNoKey)),
			together("delete key", "delete key"),
			together("disable key", "delete key").Reaches(refused("disable key", auth.ErrNoKey)),
			together("create key", "delete workspace").Reaches(refused("create key", auth.ErrWorkspaceDeleted)),
			together("set second", "delete workspace"),
			together("set second", "delete second").Reaches(refused("set second", auth.ErrWorkspaceDeleted)),
			together("repair", "create key"),
			together("repair", "delete key"),
		},
		Orders: []sim.Scenario{
			together("enable key", "delete workspace").Reaches(refused("enable key", auth.ErrWorkspaceDeleted)),
			together("set default", "delete workspace").Reaches(refused("set default", auth.ErrWorkspaceDeleted)),
			together("delete key", "delete workspace"),
			together("repair", "delete workspace"),
			together("repair", "set second"),
			together("create key", "delete workspace", "delete workspace").Reaches(refused("create key", auth.ErrWorkspaceDeleted)),
		},
	}.Play(t)
}

// refused is the result of a command that is refused.
func refused(command string, why error) string { return command + ": " + why.Error() }

// together makes a scenario with an actor for each of the commands. In some order each is
// done.
func together(names ...string) sim.Scenario {
	var done []string
	for _, name := range names {
		done = append(done, name+": done")
	}
	return sim.Scenario{Name: strings.Join(names, " beside "), Set: func(w *sim.World) { setCommands(w, names) }}.Reaches(done...)
}

func setCommands(w *sim.World, names []string) {
	bound := w.StandardKey(w.Tenant.Workspace)
	s := situation{w.Tenant.ID, w.Tenant.Workspace, w.NewWorkspace("second"), auth.HashKey(bound), auth.HashKey(w.Tenant.Management), time.Now().UTC()}
	for _, name := range names {
		switch name {
		case "set default":
			w.SetDefault(name, s.workspace)
		case "set second":
			w.SetDefault(name, s.second)
		case "delete workspace":
			w.DeleteWorkspace(name, s.workspace, bound)
		case "delete second":
			w.DeleteWorkspace(name, s.second)
		case "repair":
			damage(w, s)
			w.Repair(name)
		default:
			run, allowed := commands(s)[name], refusals[name]
			if len(names) == 1 {
				allowed = nil
			}
			w.Command(name, func(ctx context.Context, c sim.Clients) error { return run(ctx, c.Registry) }, allowed...)
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

// command is a command of the operator.
type command = func(context.Context, *auth.Registry) error

// refusals are the errors by which a command may be refused if another runs beside it.
var refusals = map[string][]error{
	"create key":  {auth.ErrWorkspaceDeleted},
	"disable key": {auth.ErrNoKey},
	"enable key":  {auth.ErrNoKey, auth.ErrWorkspaceDeleted},
	"delete key":  {auth.ErrNoKey},
}

func commands(s situation) map[string]command {
	newKey := auth.NewKey{Account: s.account, Workspace: s.workspace, Kind: auth.Standard, Name: "k"}
	second := auth.Workspace{ID: s.second, Name: "other", CreatedAt: s.now}
	first := auth.Workspace{ID: s.workspace, Name: "default", CreatedAt: s.now, Default: true}
	workspaces := []auth.Workspace{first, second}
	slices.SortFunc(workspaces, func(a, b auth.Workspace) int { return cmp.Compare(a.ID, b.ID) }) // they are as old
	keys := []auth.Key{
		{Hash: s.key, Workspace: s.workspace, Kind: auth.Standard, Name: "a key", CreatedAt: s.now},
		{Hash: s.management, Kind: auth.Management, Name: "a key", CreatedAt: s.now},
	}
	slices.SortFunc(keys, func(a, b auth.Key) int { return cmp.Compare(a.Hash, b.Hash) })
	return map[string]command{
		"create account": func(ctx context.Context, r *auth.Registry) error {
			now := time.Now().UTC().Truncate(time.Second)
			account, workspace, err := r.CreateAccount(ctx, "Another")
			if err != nil {
				return err
			}
			found, err := r.FindWorkspace(ctx, account, "")
			return is(auth.Workspace{ID: workspace, Name: "default", Default: true, CreatedAt: now}, found, err)
		},
		"check account": func(ctx context.Context, r *auth.Registry) error { return r.CheckAccount(ctx, s.account) },
		"raise counter": func(ctx context.Context, r *auth.Registry) error {
			return r.RaiseCounter(ctx, s.workspace, "openai", 3)
		},
		"create workspace": func(ctx context.Context, r *auth.Registry) error {
			now := time.Now().UTC().Truncate(time.Second)
			id, err := r.CreateWorkspace(ctx, s.account, "w")
			if err != nil {
				return err
			}
			found, err := r.FindWorkspace(ctx, s.account, id)
			return is(auth.Workspace{ID: id, Name: "w", CreatedAt: now}, found, err)
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
			return is(auth.Key{Hash: key.Hash, Workspace: s.workspace, Kind: auth.Standard, Name: "k", CreatedAt: key.CreatedAt}, key, err)
		},
		"list keys": func(ctx context.Context, r *auth.Registry) error {
			got, err := r.ListKeys(ctx, s.account)
			return is(keys, got, err)
		},
		"find key": func(ctx context.Context, r *auth.Registry) error {
			got, err := r.FindKey(ctx, s.key)
			return is(auth.SurveyedKey{Key: auth.Key{Hash: s.key, Workspace: s.workspace, Kind: auth.Standard, Name: "a key", CreatedAt: s.now}, Account: s.account}, got, err)
		},
		"disable key": func(ctx context.Context, r *auth.Registry) error { return r.DisableKey(ctx, s.account, s.key) },
		"enable key":  func(ctx context.Context, r *auth.Registry) error { return r.EnableKey(ctx, s.account, s.key) },
		"delete key":  func(ctx context.Context, r *auth.Registry) error { return r.DeleteKey(ctx, s.account, s.key) },
		"suspend key": func(ctx context.Context, r *auth.Registry) error { return r.SuspendKey(ctx, s.account, s.key, true) },
		"suspend account": func(ctx context.Context, r *auth.Registry) error {
			return r.SuspendAccount(ctx, s.account, true)
		},
	}
}

// is returns the error, or a difference of the results.
func is[T any](want, got T, err error) error {
	if err == nil && !reflect.DeepEqual(want, got) {
		return fmt.Errorf("it returned %v, want %v", got, want)
	}
	return err
}

// damage leaves half of two transactions, as a restored table may: a key missing from its
// account's list, and an enabled key of a deleted workspace.
func damage(w *sim.World, s situation) {
	rows, t := w.Rows("access"), w.TB()
	unlisted := auth.HashKey(w.Tenant.ManagementKey(t))
	rows.Delete(t, kit.Key("account#"+string(s.account), "key#"+string(unlisted)))
	third := w.NewWorkspace("third")
	stranded := auth.HashKey(w.Tenant.StandardKey(t, third))
	before := rows.Get(t, kit.Key("key#"+string(stranded), "key"))
	w.Tenant.DeleteWorkspace(t, third)
	rows.Put(t, before)
}

// The registry refuses invalid names and keys, and ids that do not exist or belong to
// another account. It then writes nothing.
func askRegistry(w *sim.World) {
	ctx, t, r, own := w.TB().Context(), w.TB(), w.Direct.Registry, w.Tenant
	stranger := kit.NewTenant(t, r)
	deleted, second := own.NewWorkspace(t), own.NewWorkspace(t)
	stranded := auth.HashKey(own.StandardKey(t, deleted))
	own.DeleteWorkspace(t, deleted)
	_, err := r.CreateWorkspace(ctx, own.ID, strings.Repeat("é", 255))
	kit.Must(t, err)
	own.StandardKey(t, second)
	rows := w.Rows("access")
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
	_, keysErr := r.ListKeys(ctx, nobody)
	_, findErr := r.FindWorkspace(ctx, nobody, second)
	wants(auth.ErrNoAccount, r.CheckAccount(ctx, nobody), workspaceErr, listErr, idsErr, keysErr, findErr, newKey(nobody, ""), r.DeleteWorkspace(ctx, nobody, second))
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
