package auth_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

func TestAWorkspaceIsFound(t *testing.T) {
	a, other := newAccess(t), newAccess(t)
	second, err := a.registry.CreateWorkspace(t.Context(), a.account, "second")
	if err != nil {
		t.Fatal(err)
	}
	find := func(id ids.Workspace) auth.Workspace {
		t.Helper()
		w, err := a.registry.FindWorkspace(t.Context(), a.account, id)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	if w := find(""); w.ID != a.workspace || !w.Default || !w.DeletedAt.IsZero() {
		t.Errorf("the default: %+v", w)
	}
	if w := find(second); w.ID != second || w.Name != "second" || w.Default {
		t.Errorf("the other: %+v", w)
	}
	for _, absent := range []ids.Workspace{other.workspace, ids.New[ids.Workspace]()} {
		_, err := a.registry.FindWorkspace(t.Context(), a.account, absent)
		a.wantError(err, auth.ErrNoWorkspace)
	}
	_, err = a.registry.FindWorkspace(t.Context(), ids.New[ids.Account](), a.workspace)
	a.wantError(err, auth.ErrNoAccount)
	for _, id := range []ids.Workspace{a.workspace, second} { // the second where there is no default any more
		if err := a.registry.DeleteWorkspace(t.Context(), a.account, id); err != nil {
			t.Fatal(err)
		}
		if w := find(id); w.DeletedAt.IsZero() || w.Default {
			t.Errorf("deleted: %+v", w)
		}
	}
	_, err = a.registry.FindWorkspace(t.Context(), a.account, "")
	a.wantError(err, auth.ErrNoWorkspace)
}

// reads are the commands that change nothing.
func reads() map[string]command {
	return map[string]command{
		"check": func(a *access, ctx context.Context, _ auth.Key) error { return a.registry.CheckAccount(ctx, a.account) },
		"list": func(a *access, ctx context.Context, _ auth.Key) error {
			_, err := a.registry.ListKeys(ctx, a.account)
			return err
		},
		"list workspaces": func(a *access, ctx context.Context, _ auth.Key) error {
			_, err := a.registry.ListWorkspaces(ctx, a.account)
			return err
		},
		"list accounts": func(a *access, ctx context.Context, _ auth.Key) error {
			_, err := a.registry.ListAccounts(ctx)
			return err
		},
		"find workspace": func(a *access, ctx context.Context, _ auth.Key) error {
			_, err := a.registry.FindWorkspace(ctx, a.account, a.workspace)
			return err
		},
	}
}

// makers are the commands that no fault can leave half done.
func makers() map[string]command {
	return map[string]command{
		"create account": func(a *access, ctx context.Context, _ auth.Key) error {
			_, _, err := a.registry.CreateAccount(ctx, "Another")
			return err
		},
		"create workspace": func(a *access, ctx context.Context, _ auth.Key) error {
			_, err := a.registry.CreateWorkspace(ctx, a.account, "w")
			return err
		},
		"set default": func(a *access, ctx context.Context, _ auth.Key) error {
			return a.registry.SetDefaultWorkspace(ctx, a.account, a.workspace)
		},
	}
}

// What cannot be asked is not said to be absent, nor to be done; and what is
// asked is as it stands.
func TestATableOutOfReach(t *testing.T) {
	refusals := []error{auth.ErrNoAccount, auth.ErrNoKey, auth.ErrNoWorkspace, auth.ErrWorkspaceDeleted, auth.ErrInvalid}
	for _, commands := range []map[string]command{reads(), writes(), makers()} {
		for name, run := range commands {
			for _, out := range []faults.Rule{
				{Operation: "GetItem"}, {Operation: "GetItem", Call: 2}, {Operation: "BatchGetItem"}, {Operation: "Query"},
				{Operation: "UpdateItem"}, {Operation: "TransactWriteItems"},
			} {
				a := newAccess(t)
				key := a.bound(a.workspace)
				a.faults.Heal()
				out.Fault = faults.Refuse()
				a.faults.Inject(out)
				err := run(a, t.Context(), key)
				asked := slices.ContainsFunc(a.faults.Calls(), func(c faults.Call) bool { return c.Failed })
				refused := slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) })
				if (err != nil) != asked || refused {
					t.Errorf("%s, %s %d out of reach: %v", name, out.Operation, out.Call, err)
				}
				for _, c := range a.faults.Calls() {
					if (c.Operation == "GetItem" || c.Operation == "Query") && c.Input["ConsistentRead"] != true {
						t.Errorf("%s: a read that may be out of date: %v", name, c.Input)
					}
				}
			}
		}
	}
}

// A transaction may be cancelled for other reasons than its conditions.
func TestACancelledTransactionIsNoRefusal(t *testing.T) {
	a := newAccess(t)
	key := a.standard()
	amid := func(fault faults.Fault, run func() error) error {
		a.faults.Heal()
		a.faults.Inject(faults.Rule{Operation: "TransactWriteItems", Call: 1, Fault: fault})
		return run()
	}
	enable := func() error { return a.registry.EnableKey(t.Context(), a.account, key.Hash) }
	create := func() error {
		_, err := a.registry.CreateWorkspace(t.Context(), a.account, "w")
		return err
	}
	if err := amid(faults.Cancel("ThrottlingError"), enable); err == nil || errors.Is(err, auth.ErrNoKey) {
		t.Errorf("throttled: %v", err)
	}
	if err := amid(faults.Cancel("None", "ValidationError", "TransactionConflict"), create); err == nil {
		t.Error("what is not valid was made again")
	}
	if err := amid(faults.Cancel("", "TransactionConflict", ""), create); err != nil {
		t.Errorf("in conflict: %v", err)
	}
}

func TestADefaultIsSetForAnAccountThatIsThere(t *testing.T) {
	a := newAccess(t)
	row := &dynamodb.DeleteItemInput{TableName: &a.table, Key: map[string]types.AttributeValue{"pk": text("account#" + string(a.account)), "sk": text("account")}}
	if _, err := a.db.DeleteItem(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	if err := a.registry.SetDefaultWorkspace(t.Context(), a.account, a.workspace); err == nil {
		t.Error("no error without an account")
	}
	a.wantError(a.registry.CheckAccount(t.Context(), a.account), auth.ErrNoAccount)
}
