package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// entries reads the lists of keys as they are stored.
func (a *access) entries() []string {
	a.Helper()
	var entries []string
	for _, pk := range []string{"account#" + string(a.account), "workspace#" + string(a.workspace)} {
		out, err := a.db.Query(context.WithoutCancel(a.Context()), &dynamodb.QueryInput{
			TableName: &a.table, ConsistentRead: aws.Bool(true),
			KeyConditionExpression: aws.String("pk = :pk AND begins_with(sk, :key)"),
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":pk": &types.AttributeValueMemberS{Value: pk}, ":key": &types.AttributeValueMemberS{Value: "key#"},
			},
		})
		if err != nil {
			a.Fatal(err)
		}
		for _, item := range out.Items {
			entries = append(entries, item["sk"].(*types.AttributeValueMemberS).Value)
		}
	}
	return entries
}

// checkLists makes sure that a key is listed in both its places, or nowhere and
// not there either.
func (a *access) checkLists() {
	a.Helper()
	entries := a.entries()
	for _, entry := range entries {
		hash := auth.KeyHash(strings.TrimPrefix(entry, "key#"))
		if count := len(slices.DeleteFunc(slices.Clone(entries), func(e string) bool { return e != entry })); count != 2 {
			a.Errorf("key %s stands in %d lists, want 2", hash, count)
		}
		if a.reason(auth.Key{Hash: hash}) == auth.UnknownKey {
			a.Errorf("key %s is listed and not there", hash)
		}
	}
}

// command is one that may be given for a key, which is bound to the account's
// default workspace.
type command func(*access, context.Context, auth.Key) error

func writes() map[string]command {
	return map[string]command{
		"create": func(a *access, ctx context.Context, _ auth.Key) error {
			_, _, err := a.registry.CreateKey(ctx, auth.NewKey{Account: a.account, Workspace: a.workspace, Kind: auth.Standard, Name: "k"})
			return err
		},
		"disable": func(a *access, ctx context.Context, k auth.Key) error {
			return a.registry.DisableKey(ctx, a.account, k.Hash)
		},
		"enable": func(a *access, ctx context.Context, k auth.Key) error {
			return a.registry.EnableKey(ctx, a.account, k.Hash)
		},
		"delete": func(a *access, ctx context.Context, k auth.Key) error {
			return a.registry.DeleteKey(ctx, a.account, k.Hash)
		},
		"delete workspace": func(a *access, ctx context.Context, _ auth.Key) error {
			return a.registry.DeleteWorkspace(ctx, a.account, a.workspace)
		},
	}
}

// The write side must survive, for each call it makes, that the call is not
// applied or that its answer is lost: once, so that the SDK's retry helps, and
// for good, so that the operator repeats the command.
func TestEveryWriteSurvivesEveryFault(t *testing.T) {
	rules := map[string]faults.Rule{
		"refused":                   {Fault: faults.Refuse()},
		"answer lost":               {Fault: faults.LoseAnswer()},
		"throttled":                 {Fault: faults.Throttle()},
		"conflict":                  {Operation: "UpdateItem", Fault: faults.Conflict()},
		"transaction throttled":     {Operation: "TransactWriteItems", Fault: faults.Cancel("None", "ThrottlingError")},
		"in conflict and throttled": {Operation: "TransactWriteItems", Fault: faults.Cancel("TransactionConflict", "RequestLimitExceeded")},
	}
	for name, operate := range writes() {
		for which, rule := range rules {
			t.Run(name+"/"+which, func(t *testing.T) {
				for total := 1; rule.Call < total; {
					rule.Call++
					total = faulty(t, operate, rule)
				}
			})
		}
	}
}

// faulty runs the operation with one call failing, once or for good, and tells
// how many calls it makes of any one operation.
func faulty(t *testing.T, operate command, rule faults.Rule) (most int) {
	t.Helper()
	a := newAccess(t)
	key := a.bound(a.workspace)
	a.faults.Heal()
	once := rule
	once.Attempt = 1
	a.faults.Inject(once)
	if err := operate(a, t.Context(), key); err != nil {
		t.Errorf("call %d fails once: %v", rule.Call, err)
	}
	for _, c := range a.faults.Calls() {
		most = max(most, c.Number)
	}
	a.faults.Heal()
	a.checkLists()

	b := newAccess(t)
	key = b.bound(b.workspace)
	b.faults.Heal()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var met atomic.Int64
	forGood := rule
	forGood.Fault = func(r *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
		if met.Add(1) == 5 {
			cancel() // a write that meets another one is made again until then
		}
		return rule.Fault(r, apply)
	}
	b.faults.Inject(forGood)
	_ = operate(b, ctx, key) // some faults are outlived
	b.faults.Heal()
	b.checkLists()
	if err := operate(b, t.Context(), key); err != nil && !errors.Is(err, auth.ErrNoKey) {
		t.Errorf("again after call %d failed for good: %v", rule.Call, err)
	}
	b.checkLists()
	return most
}

func TestTransactionConflictsAreSettled(t *testing.T) {
	a := newAccess(t)
	a.faults.Inject(faults.Rule{Operation: "TransactWriteItems", Call: 1, Fault: faults.Cancel("None", "TransactionConflict")})
	a.bound(a.workspace)
	a.checkLists()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.faults.Inject(faults.Rule{Fault: faults.Cancel("TransactionConflict")})
	if _, err := a.registry.CreateWorkspace(ctx, a.account, "w"); err == nil {
		t.Error("no error though the context ended")
	}
}

func TestAnInterruptedDeletionGoesOn(t *testing.T) {
	a := newAccess(t)
	keys := []auth.Key{a.bound(a.workspace), a.bound(a.workspace), a.bound(a.workspace)}
	unbound := a.standard()
	a.faults.Heal()
	a.faults.Inject(faults.Rule{Operation: "UpdateItem", Call: 2, Fault: faults.Refuse()})
	if err := a.registry.DeleteWorkspace(t.Context(), a.account, a.workspace); err == nil {
		t.Fatal("no error though a key could not be disabled")
	}
	a.faults.Heal()
	for range 2 {
		if err := a.registry.DeleteWorkspace(t.Context(), a.account, a.workspace); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range keys {
		if got := a.reason(key); got != auth.Disabled {
			t.Errorf("key of a deleted workspace: %q", got)
		}
		a.wantError(a.registry.EnableKey(t.Context(), a.account, key.Hash), auth.ErrWorkspaceDeleted)
	}
	if got := a.reason(unbound); got != "" {
		t.Errorf("unbound key: %q", got)
	}
}

func TestNoKeyOfADeletedWorkspaceIsLeftEnabled(t *testing.T) {
	for range 10 {
		a := newAccess(t)
		disabled := a.bound(a.workspace)
		if err := a.registry.DisableKey(t.Context(), a.account, disabled.Hash); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				_, _, err := a.registry.CreateKey(t.Context(), auth.NewKey{Account: a.account, Workspace: a.workspace, Kind: auth.Standard, Name: "k"})
				if err != nil && !errors.Is(err, auth.ErrWorkspaceDeleted) {
					t.Error(err)
				}
			})
		}
		group.Go(func() {
			if err := a.registry.EnableKey(t.Context(), a.account, disabled.Hash); err != nil && !errors.Is(err, auth.ErrWorkspaceDeleted) {
				t.Error(err)
			}
		})
		group.Go(func() {
			if err := a.registry.DeleteWorkspace(t.Context(), a.account, a.workspace); err != nil {
				t.Error(err)
			}
		})
		group.Wait()
		keys, err := a.registry.ListKeys(t.Context(), a.account)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if !key.Disabled {
				t.Errorf("key %s is enabled", key.Hash.Short())
			}
		}
	}
}

func TestDeletingTheDefaultRacesWithChangingIt(t *testing.T) {
	for round := range 10 {
		a := newAccess(t)
		second, err := a.registry.CreateWorkspace(t.Context(), a.account, fmt.Sprint("second ", round))
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for _, workspace := range []ids.Workspace{a.workspace, second} {
			group.Go(func() {
				if err := a.registry.SetDefaultWorkspace(t.Context(), a.account, workspace); err != nil && !errors.Is(err, auth.ErrWorkspaceDeleted) {
					t.Error(err)
				}
			})
		}
		group.Go(func() {
			if err := a.registry.DeleteWorkspace(t.Context(), a.account, a.workspace); err != nil {
				t.Error(err)
			}
		})
		group.Wait()
		workspaces, err := a.registry.ListWorkspaces(t.Context(), a.account)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range workspaces {
			if w.Default && !w.DeletedAt.IsZero() {
				t.Error("the default workspace is a deleted one")
			}
		}
	}
}
