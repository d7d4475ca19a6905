package auth_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// No damage gives a key more rights. The exception is an expiry that is lost: the key then never
// expires.
func TestADamagedKeyGainsNothing(t *testing.T) {
	f := newFixture(t)
	bound := f.newBoundKey()
	disabled := f.newUnboundKey()
	f.wantError(f.registry.DisableKey(t.Context(), f.account, disabled.Hash), nil)
	expired := f.newKey(auth.NewKey{Kind: auth.Standard, ExpiresAt: time.Unix(1, 0)})
	for name, key := range map[string]auth.Key{"bound": bound, "disabled": disabled, "expired": expired} {
		row := f.rows.Get(t, f.keyRow(key))
		nowhere := maps.Clone(row)
		nowhere["workspace"] = kit.Text("")
		for _, damaged := range append(kit.Damage(row), kit.Damaged{Attribute: "workspace", Value: kit.Text(""), Row: nowhere}) {
			f.rows.Put(t, damaged.Row)
			caller, reason := f.verify(key.Hash)
			workspace, isBound := caller.Bound()
			lost := damaged.Attribute == "expires_at" && damaged.Value == nil
			if !lost && reason == "" && (name != "bound" || !isBound || workspace != f.workspace && workspace != "x" || caller.MayManage()) {
				t.Errorf("%s key, %s: verified as %s, bound to %q", name, damaged, caller, workspace)
			}
		}
	}
}

func TestAContradictoryKeyIsUnknown(t *testing.T) {
	f := newFixture(t)
	for _, damaged := range []kit.Damaged{
		{Attribute: "v", Value: kit.Number("2")},
		{Attribute: "account", Value: kit.Text("")},
		{Attribute: "account", Value: kit.Number("9")},
		{Attribute: "kind", Value: kit.Text("root")},
		{Attribute: "workspace", Value: kit.Text(string(f.workspace))}, // of a management key
		{Attribute: "bound", Value: kit.Bool(true)},
		{Attribute: "disabled", Value: kit.Text("no")},
		{Attribute: "expires_at", Value: &types.AttributeValueMemberNULL{Value: true}},
	} {
		attribute, key := damaged.Attribute, f.newKey(auth.NewKey{Kind: auth.Management})
		f.rows.Set(t, f.keyRow(key), attribute, damaged.Value)
		_, err := f.verifier.Verify(t.Context(), key.Hash)
		if rejection, ok := errors.AsType[*auth.Rejection](err); !ok || rejection.Reason != auth.UnknownKey || rejection.Damage == nil {
			t.Errorf("%s: %v", attribute, err)
		}
		for account, fault := range map[ids.Account]bool{f.account: true, "another": attribute == "account"} {
			owned, err := auth.NewKeyring(f.db, f.table).Owned(t.Context(), account, []ids.KeyHash{key.Hash})
			if (errors.Join(err, owned.Damage) != nil) != fault || owned.Hashes[key.Hash] {
				t.Errorf("%s: owned %v by %s, %v", attribute, owned, account, err)
			}
		}
		listed, err := f.registry.ListKeys(t.Context(), f.account)
		at := slices.IndexFunc(listed, func(k auth.Key) bool { return k.Hash == key.Hash })
		if err != nil || at < 0 || listed[at].Damage == nil {
			t.Errorf("%s: listed as %+v, %v", attribute, listed, err)
		}
		found, err := f.registry.FindKey(t.Context(), key.Hash)
		if err != nil || found.Damage == nil || found.Hash != key.Hash || (found.Account == f.account) == (attribute == "account") {
			t.Errorf("%s: found as %+v, %v", attribute, found, err)
		}
	}
	_, err := f.verifier.Verify(t.Context(), auth.HashKey("unknown"))
	if rejection, ok := errors.AsType[*auth.Rejection](err); !ok || rejection.Reason != auth.UnknownKey || rejection.Damage != nil {
		t.Errorf("an unknown key: %#v", err)
	}
}

// A workspace with a damaged row does not exist for another account or for a key bound
// elsewhere. Reading it and taking a position in it give the same result.
func TestADamagedWorkspaceIsOutOfReach(t *testing.T) {
	f, stranger := newFixture(t), newFixture(t)
	workspaces, positions := auth.NewWorkspaces(f.db, f.table), f.newPositions()
	owner, _ := f.verify(f.newUnboundKey().Hash)
	foreign, _ := stranger.verify(stranger.newUnboundKey().Hash)
	elsewhere, _ := f.verify(f.newKey(auth.NewKey{Kind: auth.Standard, Workspace: f.newWorkspace()}).Hash)
	live := f.rows.Get(t, f.workspaceRow())
	deleted, atZero := maps.Clone(live), maps.Clone(live)
	deleted["deleted_at"], atZero["deleted_at"] = kit.Number("1"), kit.Number("0")
	rows := append(kit.Damage(live), kit.Damage(deleted)...)
	rows = append(rows, kit.Damaged{Attribute: "nothing", Row: live}, kit.Damaged{Attribute: "deleted_at", Value: kit.Number("0"), Row: atZero})
	for _, damaged := range rows {
		f.rows.Put(t, damaged.Row)
		found, err := workspaces.Find(t.Context(), f.workspace)
		if err != nil {
			t.Fatalf("%s: %v", damaged, err)
		}
		for _, caller := range []auth.Caller{foreign, elsewhere, {}} {
			if w, err := found.For(caller); !errors.Is(err, auth.ErrNoWorkspace) || w != "" {
				t.Errorf("%s: for %s: %q, %v", damaged, caller, w, err)
			}
		}
		if n, err := f.next(positions, stranger.account); !errors.Is(err, auth.ErrNoWorkspace) {
			t.Errorf("%s: for another account: position %d, %v", damaged, n, err)
		}
		_, findErr := found.For(owner)
		_, positionErr := f.next(positions, f.account)
		deciding := slices.Contains([]string{"nothing", "account", "v", "deleted_at"}, damaged.Attribute)
		_, marked := damaged.Row["deleted_at"]
		if deciding && (findErr == nil) != (positionErr == nil) || marked && (findErr == nil || positionErr == nil) {
			t.Errorf("%s: found: %v; position: %v", damaged, findErr, positionErr)
		}
		if positionErr != nil && errors.Is(findErr, auth.ErrNoWorkspace) != errors.Is(positionErr, auth.ErrNoWorkspace) {
			t.Errorf("%s: found: %v; position: %v", damaged, findErr, positionErr)
		}
		if damaged.Attribute == "nothing" {
			f.wantError(errors.Join(findErr, positionErr), nil)
		}
		if damaged.Attribute == "v" && (findErr == nil || !marked && errors.Is(findErr, auth.ErrNoWorkspace)) {
			t.Errorf("%s: its own account reads %v", damaged, findErr)
		}
	}
}

func TestADamagedRowIsNeitherAbsentNorChanged(t *testing.T) {
	f := newFixture(t)
	ctx, key := t.Context(), f.newBoundKey()
	refuse := func(name string, commands ...func() error) {
		t.Helper()
		for _, run := range commands {
			err := run()
			for _, absent := range []error{nil, auth.ErrNoKey, auth.ErrNoAccount, auth.ErrNoWorkspace, auth.ErrWorkspaceDeleted} {
				if errors.Is(err, absent) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	workspaces := func() error { _, err := f.registry.ListWorkspaces(ctx, f.account); return err }
	find := func() error { _, err := f.registry.FindWorkspace(ctx, f.account, f.workspace); return err }

	f.rows.Set(t, f.keyRow(key), "disabled", kit.Text("no"))
	refuse("a key", func() error { return f.registry.EnableKey(ctx, f.account, key.Hash) })
	for attribute, value := range map[string]types.AttributeValue{"deleted_at": kit.Text("never"), "v": kit.Number("2")} {
		f.rows.Set(t, f.workspaceRow(), attribute, value)
		refuse("a workspace",
			func() error { return f.registry.SetDefaultWorkspace(ctx, f.account, f.workspace) },
			func() error { return f.registry.DeleteWorkspace(ctx, f.account, f.workspace) })
	}
	f.rows.Set(t, f.workspaceRow(), "v", kit.Number("1"))
	for _, at := range []types.AttributeValue{kit.Text("never"), kit.Number("-62135596800")} { // Go's zero time would be live
		f.rows.Set(t, f.workspaceRow(), "deleted_at", at)
		refuse("a workspace", find)
	}
	f.rows.Set(t, f.workspaceRow(), "deleted_at", kit.Number("1"))
	f.rows.Set(t, f.workspaceRow(), "v", kit.Number("2"))
	refuse("a workspace of another version", find)
	owner, _ := f.verify(f.newUnboundKey().Hash)
	sound := f.rows.Get(t, f.accountRow())
	for attribute, value := range map[string]types.AttributeValue{"default_workspace": kit.Bool(true), "v": kit.Number("2")} {
		f.rows.Put(t, sound)
		f.rows.Set(t, f.accountRow(), attribute, value)
		refuse("an account", workspaces, find,
			func() error { return f.registry.CheckAccount(ctx, f.account) },
			func() error { _, err := auth.NewWorkspaces(f.db, f.table).Default(ctx, owner); return err })
	}
}

// survey reads the table, and returns the missing and stray list entries that name one
// of these ids.
func (f *fixture) survey(ids ...string) (*auth.Survey, []auth.ItemKey) {
	f.Helper()
	survey, err := auth.ReadSurvey(context.WithoutCancel(f.Context()), f.db, f.table)
	f.wantError(err, nil)
	var entries []auth.ItemKey
	for _, at := range append(survey.Missing, survey.Stray...) {
		if slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(at.String(), id) }) {
			entries = append(entries, at)
		}
	}
	return survey, entries
}

// Between the survey and the repair the table may have changed.
func TestANeedlessRepairWritesNothing(t *testing.T) {
	f := newFixture(t)
	ctx, key := t.Context(), f.newBoundKey()
	f.rows.Delete(t, kit.Key("workspace#"+string(f.workspace), "key#"+string(key.Hash)))
	_, missing := f.survey(string(key.Hash))
	if len(missing) != 1 {
		t.Fatalf("missing are %v", missing)
	}
	f.wantError(f.registry.Relist(ctx, missing[0]), nil)
	f.wantReason(key, auth.Disabled) // it may be half deleted
	f.wantError(f.registry.EnableKey(ctx, f.account, key.Hash), nil)
	f.wantError(f.registry.Relist(ctx, missing[0]), auth.ErrNeedless)
	f.wantReason(key, "")
	f.rows.Delete(t, f.keyRow(key))
	f.wantError(f.registry.Relist(ctx, missing[0]), auth.ErrNeedless)

	for _, next := range []int64{2, 3, 2} {
		f.wantError(f.registry.RaiseCounter(ctx, f.workspace, "openai", next), nil)
	}
	survey, _ := f.survey()
	if w := survey.Workspaces[f.workspace]; w.Next["openai"] != 3 || survey.Accounts[f.account].Default != f.workspace {
		t.Errorf("%+v of %+v", w, survey.Accounts[f.account])
	}
	f.rows.Set(t, f.workspaceRow(), "deleted_at", kit.Number("1"))
	f.wantError(f.registry.ClearDefault(ctx, f.account, f.workspace), nil)
	if survey, _ = f.survey(); survey.Accounts[f.account].Default != "" {
		t.Errorf("%+v", survey.Accounts[f.account])
	}
}

// A list entry belongs to an account or a workspace, and names a key or a workspace. A
// row that lacks a required attribute is damaged.
func TestASurveySortsItems(t *testing.T) {
	f := newFixture(t)
	id := string(f.account)
	for at, isEntry := range map[[2]string]bool{
		{"account#" + id, "key#" + id}: true, {"account#" + id, "workspace#" + id}: true, {"workspace#" + id, "key#" + id}: true,
		{"account#" + id, "job#" + id}: false, {"workspace#" + id, "account"}: false, {"account#" + id, "workspace"}: false,
		{"key#" + id, "key#" + id}: false, {"other#" + id, "workspace#" + id}: false,
	} {
		item := kit.Key(at[0], at[1])
		item["v"] = kit.Number("1")
		f.rows.Put(t, item)
		survey, entries := f.survey(id)
		unknown := slices.ContainsFunc(survey.Unknown, func(p auth.ItemKey) bool { return strings.Contains(p.String(), id) })
		if unknown == isEntry || (len(entries) == 1) != isEntry {
			t.Errorf("%v: unknown %v, entries without a row %v", at, unknown, entries)
		}
		f.rows.Delete(t, kit.Key(at[0], at[1]))
	}
	sound := f.rows.Get(t, f.workspaceRow())
	for _, attribute := range []string{"v", "account", "next"} {
		lacking := maps.Clone(sound)
		delete(lacking, attribute)
		f.rows.Put(t, lacking)
		if survey, _ := f.survey(); survey.Workspaces[f.workspace].Damage == nil {
			t.Errorf("without %s: %+v", attribute, survey.Workspaces[f.workspace])
		}
	}
}
