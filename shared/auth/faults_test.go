package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// checkInvariants checks what every request relies on: a key is in all its lists
// or in none, the default workspace is live, and no enabled key is bound to a
// deleted workspace. It reads the table once for all the fixtures.
func checkInvariants(t *testing.T, fixtures ...*fixture) {
	t.Helper()
	survey, _ := fixtures[0].survey()
	for _, f := range fixtures {
		if places := placesOf(survey, string(f.account), string(f.workspace)); len(places) > 0 {
			t.Errorf("%s: list entries missing or stray: %v", f.Name(), places)
		}
		if id := survey.Accounts[f.account].Default; id != "" && !survey.Workspaces[id].DeletedAt.IsZero() {
			t.Errorf("%s: the default workspace is deleted", f.Name())
		}
		for hash, key := range survey.Keys {
			if key.Account == f.account && !key.Disabled && !survey.Workspaces[key.Workspace].DeletedAt.IsZero() {
				t.Errorf("%s: key %s of a deleted workspace is enabled", f.Name(), hash.Short())
			}
		}
	}
}

// command is one of the operator's, with a key that is bound to the account's
// default workspace.
type command func(ctx context.Context, f *fixture, key auth.Key) error

func commands() map[string]command {
	return map[string]command{
		"create account": func(ctx context.Context, f *fixture, _ auth.Key) error {
			_, _, err := f.registry.CreateAccount(ctx, "Another")
			return err
		},
		"check account": func(ctx context.Context, f *fixture, _ auth.Key) error {
			return f.registry.CheckAccount(ctx, f.account)
		},
		"list accounts": func(ctx context.Context, f *fixture, _ auth.Key) error {
			_, err := f.registry.ListAccounts(ctx)
			return err
		},
		"create workspace": func(ctx context.Context, f *fixture, _ auth.Key) error {
			_, err := f.registry.CreateWorkspace(ctx, f.account, "w")
			return err
		},
		"list workspaces": func(ctx context.Context, f *fixture, _ auth.Key) error {
			_, err := f.registry.ListWorkspaces(ctx, f.account)
			return err
		},
		"find workspace": func(ctx context.Context, f *fixture, _ auth.Key) error {
			_, err := f.registry.FindWorkspace(ctx, f.account, f.workspace)
			return err
		},
		"set default": func(ctx context.Context, f *fixture, _ auth.Key) error {
			return f.registry.SetDefaultWorkspace(ctx, f.account, f.workspace)
		},
		"delete workspace": func(ctx context.Context, f *fixture, _ auth.Key) error {
			return f.registry.DeleteWorkspace(ctx, f.account, f.workspace)
		},
		"create key": func(ctx context.Context, f *fixture, _ auth.Key) error {
			_, _, err := f.registry.CreateKey(ctx, auth.NewKey{Account: f.account, Workspace: f.workspace, Kind: auth.Standard, Name: "k"})
			return err
		},
		"list keys": func(ctx context.Context, f *fixture, _ auth.Key) error {
			_, err := f.registry.ListKeys(ctx, f.account)
			return err
		},
		"disable key": func(ctx context.Context, f *fixture, k auth.Key) error {
			return f.registry.DisableKey(ctx, f.account, k.Hash)
		},
		"enable key": func(ctx context.Context, f *fixture, k auth.Key) error {
			return f.registry.EnableKey(ctx, f.account, k.Hash)
		},
		"delete key": func(ctx context.Context, f *fixture, k auth.Key) error {
			return f.registry.DeleteKey(ctx, f.account, k.Hash)
		},
	}
}

// TestEveryFault makes each call of each command fail in every way: once, so that
// the command succeeds, and from then on, so that it reports an error, is no
// refusal, and succeeds when it is given again.
func TestEveryFault(t *testing.T) {
	refused := map[string]faults.Fault{"refused": faults.Refuse()} // of a read, every failure is the same
	all := map[string]map[string]faults.Fault{
		"GetItem": refused, "BatchGetItem": refused, "Query": refused, "Scan": refused,
		"UpdateItem": {
			"refused": faults.Refuse(), "answer lost": faults.LoseAnswer(), "throttled": faults.Throttle(), "conflict": faults.Conflict(),
		},
		"TransactWriteItems": {
			"refused": faults.Refuse(), "answer lost": faults.LoseAnswer(), "throttled": faults.Throttle(),
			"conflict":              faults.Cancel("None", "TransactionConflict"),
			"no capacity":           faults.Cancel("None", "ThrottlingError"),
			"conflict, no capacity": faults.Cancel("TransactionConflict", "RequestLimitExceeded"),
		},
	}
	var fixtures []*fixture
	for name, run := range commands() {
		f := newFixture(t)
		key := f.newBoundKey()
		f.faults.Heal()
		f.wantError(run(t.Context(), f, key), nil)
		for _, call := range f.faults.Calls() {
			if (call.Operation == "GetItem" || call.Operation == "Query" || call.Operation == "Scan") && call.Input["ConsistentRead"] != true {
				t.Errorf("%s: the read is not consistent: %v", name, call.Input)
			}
			for which, fault := range all[call.Operation] {
				t.Run(fmt.Sprintf("%s/%s %d/%s", name, call.Operation, call.Number, which), func(t *testing.T) {
					rule := faults.Rule{Operation: call.Operation, Call: call.Number, Fault: fault}
					fixtures = append(fixtures, failOnce(t, run, rule), failOnwards(t, run, rule))
				})
			}
		}
	}
	checkInvariants(t, fixtures...)
}

func failOnce(t *testing.T, run command, rule faults.Rule) *fixture {
	t.Helper()
	f := newFixture(t)
	key := f.newBoundKey()
	f.faults.Heal()
	rule.Attempt = 1
	f.faults.Inject(rule)
	if err := run(t.Context(), f, key); err != nil {
		t.Errorf("failing once: %v", err)
	}
	return f
}

func failOnwards(t *testing.T, run command, rule faults.Rule) *fixture {
	t.Helper()
	f := newFixture(t)
	key := f.newBoundKey()
	f.faults.Heal()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var failures atomic.Int64
	fault := rule.Fault
	rule.Onwards = true
	rule.Fault = func(r *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
		if failures.Add(1) == 5 {
			cancel() // ends the repetition of a write in conflict
		}
		return fault(r, apply)
	}
	f.faults.Inject(rule)
	err := run(ctx, f, key)
	if err == nil {
		t.Error("failing onwards: no error")
	}
	for _, refusal := range []error{auth.ErrNoAccount, auth.ErrNoKey, auth.ErrNoWorkspace, auth.ErrWorkspaceDeleted, auth.ErrInvalid} {
		if errors.Is(err, refusal) {
			t.Errorf("failing onwards: refused: %v", err)
		}
	}
	f.faults.Heal()
	if err := run(t.Context(), f, key); err != nil && !errors.Is(err, auth.ErrNoKey) {
		t.Errorf("again: %v", err)
	}
	return f
}

func TestAnInterruptedDeletionGoesOn(t *testing.T) {
	f := newFixture(t)
	keys := []auth.Key{f.newBoundKey(), f.newBoundKey(), f.newBoundKey()}
	unbound := f.newUnboundKey()
	f.faults.Heal()
	f.faults.Inject(faults.Rule{Operation: "UpdateItem", Call: 2, Fault: faults.Refuse()})
	if err := f.registry.DeleteWorkspace(t.Context(), f.account, f.workspace); err == nil {
		t.Fatal("no error though a key could not be disabled")
	}
	f.faults.Heal()
	for range 2 {
		f.wantError(f.registry.DeleteWorkspace(t.Context(), f.account, f.workspace), nil)
	}
	for _, key := range keys {
		f.wantReason(key, auth.Disabled)
		f.wantError(f.registry.EnableKey(t.Context(), f.account, key.Hash), auth.ErrWorkspaceDeleted)
	}
	f.wantReason(unbound, "")
}

func TestConcurrentCommandsKeepTheInvariants(t *testing.T) {
	for range 10 {
		f := newFixture(t)
		key, second := f.newBoundKey(), f.newWorkspace()
		f.wantError(f.registry.DisableKey(t.Context(), f.account, key.Hash), nil)
		var group sync.WaitGroup
		all := commands()
		for _, name := range []string{"create key", "create key", "create key", "enable key", "set default", "delete workspace"} {
			group.Go(func() {
				if err := all[name](t.Context(), f, key); err != nil && !errors.Is(err, auth.ErrWorkspaceDeleted) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		group.Go(func() { f.wantError(f.registry.SetDefaultWorkspace(t.Context(), f.account, second), nil) })
		group.Wait()
		checkInvariants(t, f)
	}
}

// TestACommandMeetsAnother runs a second command while a call of the first is on
// its way.
func TestACommandMeetsAnother(t *testing.T) {
	type run func(f *fixture, key auth.Key, second ids.Workspace) error
	enableKey := func(f *fixture, k auth.Key, _ ids.Workspace) error {
		return f.registry.EnableKey(f.Context(), f.account, k.Hash)
	}
	deleteKey := func(f *fixture, k auth.Key, _ ids.Workspace) error {
		return f.registry.DeleteKey(f.Context(), f.account, k.Hash)
	}
	deleteFirst := func(f *fixture, _ auth.Key, _ ids.Workspace) error {
		return f.registry.DeleteWorkspace(f.Context(), f.account, f.workspace)
	}
	deleteSecond := func(f *fixture, _ auth.Key, second ids.Workspace) error {
		return f.registry.DeleteWorkspace(f.Context(), f.account, second)
	}
	setSecond := func(f *fixture, _ auth.Key, second ids.Workspace) error {
		return f.registry.SetDefaultWorkspace(f.Context(), f.account, second)
	}
	const first, second, none = "first", "second", "none"
	for _, c := range []struct {
		name, operation string
		run, other      run
		want            error
		wantDefault     string
	}{
		{"enable and delete a key", "TransactWriteItems", enableKey, deleteKey, auth.ErrNoKey, first},
		{"delete a key twice", "TransactWriteItems", deleteKey, deleteKey, auth.ErrNoKey, first},
		{"delete a workspace and one of its keys", "UpdateItem", deleteFirst, deleteKey, nil, none},
		{"delete what becomes the default", "TransactWriteItems", deleteSecond, setSecond, nil, none},
		{"delete what was the default", "TransactWriteItems", deleteFirst, setSecond, nil, second},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			key, other, id := f.newBoundKey(), *f, f.newWorkspace()
			f.newBoundKey()
			other.registry = auth.NewRegistry(dynamodb.NewFromConfig(testkit.Start(t).Config), f.table)
			f.faults.Heal()
			f.faults.Inject(faults.Rule{Operation: c.operation, Call: 1, Fault: func(_ *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
				f.wantError(c.other(&other, key, id), nil)
				return apply()
			}})
			f.wantError(c.run(f, key, id), c.want)
			checkInvariants(t, f)
			if c.want != nil {
				f.wantReason(key, auth.UnknownKey)
			}
			survey, _ := f.survey()
			names := map[ids.Workspace]string{f.workspace: first, id: second, "": none}
			if got := names[survey.Accounts[f.account].Default]; got != c.wantDefault {
				t.Errorf("the default is the %s workspace, want %s", got, c.wantDefault)
			}
		})
	}
}
