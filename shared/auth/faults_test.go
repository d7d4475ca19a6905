package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

func errorOf[T any](_ T, err error) error { return err }

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
			return errorOf(f.registry.ListAccounts(ctx))
		},
		"read survey": func(ctx context.Context, f *fixture, _ auth.Key) error {
			return errorOf(auth.ReadSurvey(ctx, f.db, f.table))
		},
		"raise counter": func(ctx context.Context, f *fixture, _ auth.Key) error {
			return f.registry.RaiseCounter(ctx, f.workspace, "openai", 3)
		},
		"create workspace": func(ctx context.Context, f *fixture, _ auth.Key) error {
			return errorOf(f.registry.CreateWorkspace(ctx, f.account, "w"))
		},
		"list workspaces": func(ctx context.Context, f *fixture, _ auth.Key) error {
			return errorOf(f.registry.ListWorkspaces(ctx, f.account))
		},
		"find workspace": func(ctx context.Context, f *fixture, _ auth.Key) error {
			return errorOf(f.registry.FindWorkspace(ctx, f.account, f.workspace))
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
			return errorOf(f.registry.ListKeys(ctx, f.account))
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
		f, key := newFixtureWithKey(t)
		f.wantError(run(t.Context(), f, key), nil)
		for _, call := range f.faults.Calls() {
			if (call.Operation == "GetItem" || call.Operation == "Query" || call.Operation == "Scan") && call.Input["ConsistentRead"] != true {
				t.Errorf("%s: the read is not consistent: %v", name, call.Input)
			}
			items, _ := call.Input["TransactItems"].([]any)
			for _, item := range items { // ids are random; if one were repeated, the stored row would stay
				if put, ok := item.(map[string]any)["Put"].(map[string]any); ok && put["ConditionExpression"] != "attribute_not_exists(pk)" {
					t.Errorf("%s: %v is put on condition %q", name, put["Item"], put["ConditionExpression"])
				}
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

func newFixtureWithKey(t *testing.T) (*fixture, auth.Key) {
	t.Helper()
	f := newFixture(t)
	key := f.newBoundKey()
	f.faults.Heal()
	return f, key
}

func failOnce(t *testing.T, run command, rule faults.Rule) *fixture {
	t.Helper()
	f, key := newFixtureWithKey(t)
	rule.Attempt = 1
	f.faults.Inject(rule)
	if err := run(t.Context(), f, key); err != nil {
		t.Errorf("failing once: %v", err)
	}
	return f
}

func failOnwards(t *testing.T, run command, rule faults.Rule) *fixture {
	t.Helper()
	f, key := newFixtureWithKey(t)
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

// TestACommandMeetsAnother runs a second command while a call of the first is on
// its way.
func TestACommandMeetsAnother(t *testing.T) {
	all := commands()
	all["set second"] = func(ctx context.Context, f *fixture, _ auth.Key) error {
		return f.registry.SetDefaultWorkspace(ctx, f.account, f.second)
	}
	all["delete second"] = func(ctx context.Context, f *fixture, _ auth.Key) error {
		return f.registry.DeleteWorkspace(ctx, f.account, f.second)
	}
	const first, second, none = "first", "second", "none"
	for _, c := range []struct {
		run, operation, other string
		want                  error
		wantDefault           string
	}{
		{"enable key", "TransactWriteItems", "delete key", auth.ErrNoKey, first},
		{"delete key", "TransactWriteItems", "delete key", auth.ErrNoKey, first},
		{"create key", "TransactWriteItems", "delete workspace", auth.ErrWorkspaceDeleted, none},
		{"enable key", "TransactWriteItems", "delete workspace", auth.ErrWorkspaceDeleted, none},
		{"set default", "TransactWriteItems", "delete workspace", auth.ErrWorkspaceDeleted, none},
		{"delete workspace", "TransactWriteItems", "create key", nil, none},
		{"delete workspace", "UpdateItem", "delete key", nil, none},
		{"delete workspace", "TransactWriteItems", "set second", nil, second},
		{"delete second", "TransactWriteItems", "set second", nil, none},
	} {
		t.Run(c.run+" meets "+c.other, func(t *testing.T) {
			f := newFixture(t)
			key := f.newBoundKey()
			f.newBoundKey()
			f.second = f.newWorkspace()
			other := *f
			other.registry = auth.NewRegistry(dynamodb.NewFromConfig(testkit.Start(t).Config), f.table)
			f.faults.Heal()
			f.faults.Inject(faults.Rule{Operation: c.operation, Call: 1, Fault: func(_ *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
				f.wantError(all[c.other](t.Context(), &other, key), nil)
				return apply()
			}})
			f.wantError(all[c.run](t.Context(), f, key), c.want)
			checkInvariants(t, f)
			if c.other == "delete key" {
				f.wantReason(key, auth.UnknownKey)
			}
			survey, _ := f.survey()
			names := map[ids.Workspace]string{f.workspace: first, f.second: second, "": none}
			if got := names[survey.Accounts[f.account].Default]; got != c.wantDefault {
				t.Errorf("the default is the %s workspace, want %s", got, c.wantDefault)
			}
		})
	}
}
