package auth_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"signalbox.dev/infra/sim"
	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// TestSimulation plays the operator's commands with every fault of every call, and
// beside each other in every order of their calls.
func TestSimulation(t *testing.T) {
	var s sim.Suite
	for _, name := range slices.Sorted(maps.Keys(commands(situation{}))) {
		s.Alone = append(s.Alone, scenario(name))
	}
	for _, names := range [][]string{
		{"set default"}, {"set second"}, {"delete workspace"}, {"delete second"}, {"repair"},
	} {
		s.Alone = append(s.Alone, scenario(names...))
	}
	for _, names := range [][]string{
		{"enable key", "delete key"}, {"delete key", "delete key"}, {"disable key", "delete key"}, {"create key", "delete workspace"},
		{"set second", "delete workspace"}, {"set second", "delete second"}, {"repair", "create key"}, {"repair", "delete key"},
	} {
		s.Pairs = append(s.Pairs, scenario(names...))
	}
	for _, names := range [][]string{
		{"enable key", "delete workspace"}, {"set default", "delete workspace"}, {"delete key", "delete workspace"},
		{"repair", "delete workspace"}, {"repair", "set second"}, {"create key", "delete workspace", "delete workspace"},
	} {
		s.Orders = append(s.Orders, scenario(names...))
	}
	s.Play(t)
}

// situation is a key that is bound to the default workspace, and a second workspace.
type situation struct {
	account           ids.Account
	workspace, second ids.Workspace
	key               auth.KeyHash
}

// command is one that may be refused with these errors if another runs beside it.
type command struct {
	run     func(context.Context, *auth.Registry) error
	refused []error
}

func commands(s situation) map[string]command {
	fails := func(run func(context.Context, *auth.Registry) error, refused ...error) command {
		return command{run, refused}
	}
	newKey := auth.NewKey{Account: s.account, Workspace: s.workspace, Kind: auth.Standard, Name: "k"}
	return map[string]command{
		"create account": fails(func(ctx context.Context, r *auth.Registry) error {
			_, _, err := r.CreateAccount(ctx, "Another")
			return err
		}),
		"check account": fails(func(ctx context.Context, r *auth.Registry) error { return r.CheckAccount(ctx, s.account) }),
		"list accounts": fails(func(ctx context.Context, r *auth.Registry) error { return errorOf(r.ListAccounts(ctx)) }),
		"raise counter": fails(func(ctx context.Context, r *auth.Registry) error {
			return r.RaiseCounter(ctx, s.workspace, "openai", 3)
		}),
		"create workspace": fails(func(ctx context.Context, r *auth.Registry) error {
			return errorOf(r.CreateWorkspace(ctx, s.account, "w"))
		}),
		"list workspaces":    fails(func(ctx context.Context, r *auth.Registry) error { return errorOf(r.ListWorkspaces(ctx, s.account)) }),
		"list workspace ids": fails(func(ctx context.Context, r *auth.Registry) error { return errorOf(r.ListWorkspaceIDs(ctx, s.account)) }),
		"find workspace": fails(func(ctx context.Context, r *auth.Registry) error {
			return errorOf(r.FindWorkspace(ctx, s.account, s.workspace))
		}),
		"create key": fails(func(ctx context.Context, r *auth.Registry) error {
			_, _, err := r.CreateKey(ctx, newKey)
			return err
		}, auth.ErrWorkspaceDeleted),
		"list keys":   fails(func(ctx context.Context, r *auth.Registry) error { return errorOf(r.ListKeys(ctx, s.account)) }),
		"find key":    fails(func(ctx context.Context, r *auth.Registry) error { return errorOf(r.FindKey(ctx, s.key)) }),
		"disable key": fails(func(ctx context.Context, r *auth.Registry) error { return r.DisableKey(ctx, s.account, s.key) }, auth.ErrNoKey),
		"enable key": fails(func(ctx context.Context, r *auth.Registry) error { return r.EnableKey(ctx, s.account, s.key) },
			auth.ErrNoKey, auth.ErrWorkspaceDeleted),
		"delete key": fails(func(ctx context.Context, r *auth.Registry) error { return r.DeleteKey(ctx, s.account, s.key) }, auth.ErrNoKey),
	}
}

func errorOf[T any](_ T, err error) error { return err }

// scenario has an actor for each of the commands.
func scenario(names ...string) sim.Scenario {
	return sim.Scenario{Name: strings.Join(names, " beside "), Set: func(w *sim.World) {
		bound := w.StandardKey(w.Tenant.Workspace)
		s := situation{w.Tenant.ID, w.Tenant.Workspace, w.NewWorkspace("second"), auth.HashKey(bound)}
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
				c := commands(s)[name]
				if len(names) == 1 {
					c.refused = nil
				}
				w.Command(name, func(ctx context.Context, clients sim.Clients) error { return c.run(ctx, clients.Registry) }, c.refused...)
			}
		}
	}}
}

// damage leaves half of three transactions, as a restored table may: a key that is not in
// its account's list, a list entry of no key, and an enabled key of a deleted workspace.
func damage(w *sim.World, s situation) {
	rows, t := w.AccessRows(), w.TB()
	account := "account#" + string(s.account)
	unlisted := auth.HashKey(w.Tenant.ManagementKey(t))
	rows.Delete(t, testkit.Key(account, "key#"+string(unlisted)))
	stray := rows.Get(t, testkit.Key(account, "key#"+string(s.key)))
	stray["sk"] = testkit.Text("key#" + w.UnknownHash())
	rows.Put(t, stray)
	third := w.NewWorkspace("third")
	stranded := auth.HashKey(w.Tenant.StandardKey(t, third))
	before := rows.Get(t, testkit.Key("key#"+string(stranded), "key"))
	w.Tenant.DeleteWorkspace(t, third)
	rows.Put(t, before)
}
