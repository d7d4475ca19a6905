package auth_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// spoil changes a row as no version of the operator's command does.
func (a *access) spoil(pk, sk, attribute string, value types.AttributeValue) {
	a.Helper()
	_, err := a.db.UpdateItem(a.Context(), &dynamodb.UpdateItemInput{
		TableName:        &a.table,
		Key:              map[string]types.AttributeValue{"pk": text(pk), "sk": text(sk)},
		UpdateExpression: aws.String("SET #a = :value"), ConditionExpression: aws.String("attribute_exists(pk)"),
		ExpressionAttributeNames:  map[string]string{"#a": attribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{":value": value},
	})
	if err != nil {
		a.Fatal(err)
	}
}

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func number(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

func TestARowThatContradictsItselfIsNoKey(t *testing.T) {
	a := newAccess(t)
	for _, c := range []struct {
		name, attribute string
		value           types.AttributeValue
	}{
		{"another version", "v", number("2")},
		{"no account", "account", text("")},
		{"unknown kind", "kind", text("root")},
		{"a management key bound to a workspace", "workspace", text(string(a.workspace))},
		{"of another type", "disabled", text("no")},
	} {
		key := a.key(auth.NewKey{Kind: auth.Management})
		a.spoil("key#"+string(key.Hash), "key", c.attribute, c.value)
		_, err := auth.NewVerifier(a.db, a.table).Verify(t.Context(), key.Hash)
		if rejection, ok := errors.AsType[*auth.Rejection](err); !ok || rejection.Reason != auth.UnknownKey || rejection.Fault == nil {
			t.Errorf("%s: %v", c.name, err)
		}
		owned, err := auth.NewKeyring(a.db, a.table).Owned(t.Context(), a.account, []auth.KeyHash{key.Hash})
		if err != nil || owned[key.Hash] {
			t.Errorf("%s: owned %v, %v", c.name, owned, err)
		}
		for range 20 { // attributes are decoded in any order, and no more of them after a bad one
			listed, err := a.registry.ListKeys(t.Context(), a.account)
			at := slices.IndexFunc(listed, func(k auth.Key) bool { return k.Hash == key.Hash })
			if err != nil || at < 0 || listed[at].Fault == nil {
				t.Fatalf("%s: listed as %+v, %v", c.name, listed, err)
			}
		}
	}
}

func TestAWorkspaceOfAnotherShapeIsOutOfReach(t *testing.T) {
	a := newAccess(t)
	caller, err := auth.NewVerifier(a.db, a.table).Verify(t.Context(), a.standard().Hash)
	if err != nil {
		t.Fatal(err)
	}
	workspaces, row := auth.NewWorkspaces(a.db, a.table), "workspace#"+string(a.workspace)
	reach := func() error {
		found, err := workspaces.Find(t.Context(), a.workspace)
		if err != nil {
			return err
		}
		_, err = found.For(caller)
		return err
	}
	a.wantError(reach(), nil)
	other, err := a.registry.CreateWorkspace(t.Context(), a.account, "other")
	if err != nil {
		t.Fatal(err)
	}
	free := caller
	if caller, err = auth.NewVerifier(a.db, a.table).Verify(t.Context(), a.bound(other).Hash); err != nil {
		t.Fatal(err)
	}
	a.wantError(reach(), auth.ErrNoWorkspace)
	caller = free
	a.spoil(row, "workspace", "deleted_at", number("1"))
	a.wantError(reach(), auth.ErrNoWorkspace)
	for attribute, value := range map[string]types.AttributeValue{"v": number("2"), "deleted_at": text("never")} {
		a.spoil(row, "workspace", attribute, value)
		if err := reach(); err == nil || errors.Is(err, auth.ErrNoWorkspace) {
			t.Errorf("%s: %v", attribute, err)
		}
	}
	a.spoil("account#"+string(a.account), "account", "default_workspace", &types.AttributeValueMemberBOOL{Value: true})
	if w, err := workspaces.Default(t.Context(), caller); err == nil || errors.Is(err, auth.ErrNoWorkspace) {
		t.Errorf("an unreadable account has the default workspace %q, %v", w, err)
	}
}

func TestAnUnreadableRowIsNeitherAbsentNorChanged(t *testing.T) {
	a := newAccess(t)
	ctx, key := t.Context(), a.bound(a.workspace)
	refuse := func(name string, absent error, commands ...func() error) {
		t.Helper()
		for range 20 { // attributes are decoded in any order
			for _, run := range commands {
				if err := run(); err == nil || errors.Is(err, absent) {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
	}
	keys := func() error { _, err := a.registry.ListKeys(ctx, a.account); return err }
	workspaces := func() error { _, err := a.registry.ListWorkspaces(ctx, a.account); return err }
	find := func() error { _, err := a.registry.FindWorkspace(ctx, a.account, a.workspace); return err }

	row := "key#" + string(key.Hash)
	a.spoil(row, "key", "disabled", text("no"))
	refuse("a key", auth.ErrNoKey,
		func() error { return a.registry.EnableKey(ctx, a.account, key.Hash) },
		func() error { return a.registry.DeleteKey(ctx, a.account, key.Hash) })
	a.spoil("account#"+string(a.account), row, "v", text("one"))
	refuse("an entry of a list", auth.ErrNoAccount, keys)
	a.spoil("workspace#"+string(a.workspace), "workspace", "deleted_at", text("never"))
	refuse("a workspace", auth.ErrNoWorkspace, workspaces, find)
	for range 20 {
		a.wantError(a.registry.SetDefaultWorkspace(ctx, a.account, a.workspace), auth.ErrNoWorkspace)
	}
	a.spoil("account#"+string(a.account), "account", "default_workspace", &types.AttributeValueMemberBOOL{Value: true})
	refuse("an account", auth.ErrNoAccount, workspaces, find,
		func() error { return a.registry.CheckAccount(ctx, a.account) })
}

// It lets nobody in as it is.
func TestAKeyThatContradictsItselfIsNotDisabled(t *testing.T) {
	a := newAccess(t)
	a.spoil("key#"+string(a.bound(a.workspace).Hash), "key", "v", number("2"))
	a.faults.Heal()
	if err := a.registry.DeleteWorkspace(t.Context(), a.account, a.workspace); err != nil {
		t.Error(err)
	}
	for _, c := range a.faults.Calls() {
		if c.Operation == "UpdateItem" {
			t.Errorf("%v", c.Input)
		}
	}
}

func TestAHundredKeysAreLookedUpAtOnceAndNoMore(t *testing.T) {
	a := newAccess(t)
	keys, own := auth.NewKeyring(a.db, a.table), a.standard().Hash
	hashes := []auth.KeyHash{own, own}
	for n := range 99 {
		hashes = append(hashes, auth.HashKey(fmt.Sprint("nobody's ", n)))
	}
	owned, err := keys.Owned(t.Context(), a.account, hashes)
	if err != nil || len(owned) != 1 || !owned[own] {
		t.Errorf("of 100 keys and a repeat: %v, %v", owned, err)
	}
	if owned, err := keys.Owned(t.Context(), ids.New[ids.Account](), hashes); err != nil || len(owned) > 0 {
		t.Errorf("for another account: %v, %v", owned, err)
	}
	a.faults.Heal()
	if owned, err := keys.Owned(t.Context(), a.account, append(hashes, "one more")); err == nil || len(a.faults.Calls()) > 0 {
		t.Errorf("of 101 keys: %v after %d calls", owned, len(a.faults.Calls()))
	}
	a.faults.Inject(faults.Rule{Operation: "BatchGetItem", Fault: faults.Refuse()})
	if owned, err := keys.Owned(t.Context(), a.account, hashes); err == nil {
		t.Errorf("where nobody can be asked: %v", owned)
	}
}

// Whatever a workspace's row holds, to another account it does not exist.
func TestADamagedWorkspaceIsNobodyElses(t *testing.T) {
	a := newAccess(t)
	positions, workspaces, stranger := auth.NewPositions(a.db, a.table), auth.NewWorkspaces(a.db, a.table), newAccess(t)
	caller, err := auth.NewVerifier(stranger.db, stranger.table).Verify(t.Context(), stranger.standard().Hash)
	if err != nil {
		t.Fatal(err)
	}
	sound, err := a.db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &a.table,
		Key: map[string]types.AttributeValue{"pk": text("workspace#" + string(a.workspace)), "sk": text("workspace")}})
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := workspaces.Find(t.Context(), ids.New[ids.Workspace]())
	if err != nil {
		t.Fatal(err)
	}
	if w, err := unknown.For(auth.Caller{}); !errors.Is(err, auth.ErrNoWorkspace) {
		t.Errorf("for nobody: %q, %v", w, err)
	}
	for _, d := range testkit.Damage(sound.Item) {
		if _, err := a.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &a.table, Item: d.Row}); err != nil {
			t.Fatal(err)
		}
		if n, err := positions.Claim(t.Context(), caller.Account(), a.workspace, "openai"); !errors.Is(err, auth.ErrNoWorkspace) {
			t.Errorf("%s: position %d, %v", d, n, err)
		}
		found, err := workspaces.Find(t.Context(), a.workspace)
		if err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		if w, err := found.For(caller); !errors.Is(err, auth.ErrNoWorkspace) || w != "" {
			t.Errorf("%s: %s, %v", d, w, err)
		}
	}
}

func TestAnAnswerWithoutAPositionGivesNone(t *testing.T) {
	a := newAccess(t)
	positions := auth.NewPositions(a.db, a.table)
	a.faults.Inject(faults.Rule{Operation: "UpdateItem", Fault: faults.EmptyAnswer()})
	if n, err := positions.Claim(t.Context(), a.account, a.workspace, "openai"); err == nil {
		t.Errorf("position %d", n)
	}
	a.faults.Heal()
	if n, err := positions.Claim(t.Context(), a.account, a.workspace, "openai"); err != nil || n != 1 {
		t.Errorf("then position %d, %v; want 1, after a gap", n, err)
	}
}

func TestAnUnknownKeyIsNoFault(t *testing.T) {
	a := newAccess(t)
	verifier := auth.NewVerifier(a.db, a.table)
	_, err := verifier.Verify(t.Context(), auth.HashKey("nobody's"))
	if rejection, ok := errors.AsType[*auth.Rejection](err); !ok || rejection.Reason != auth.UnknownKey || rejection.Fault != nil {
		t.Errorf("%#v", err)
	}
	key := a.standard()
	if caller, err := verifier.Verify(t.Context(), key.Hash); err != nil || caller.Key() != key.Hash {
		t.Errorf("let in as %v, %v", caller, err)
	}
}

// Ids and keys are random, so that none is met twice; if one were, the row that
// is there would stay.
func TestNothingIsCreatedOverAnother(t *testing.T) {
	a := newAccess(t)
	if _, _, err := a.registry.CreateAccount(t.Context(), "Another"); err != nil {
		t.Fatal(err)
	}
	a.bound(a.workspace)
	puts := 0
	for _, c := range a.faults.Calls() {
		items, _ := c.Input["TransactItems"].([]any)
		for _, item := range items {
			if put, ok := item.(map[string]any)["Put"].(map[string]any); ok {
				puts++
				if put["ConditionExpression"] != "attribute_not_exists(pk)" {
					t.Errorf("%v is put on condition %q", put["Item"], put["ConditionExpression"])
				}
			}
		}
	}
	if puts < 6 { // account, workspace, key and their entries in lists
		t.Errorf("%d items are put", puts)
	}
}
