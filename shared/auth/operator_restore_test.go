package auth_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/auth"
)

// survey reads the table, and returns the missing and stray list entries that name one
// of these ids.
func (f *fixture) survey(ids ...string) (*auth.Survey, []auth.Place) {
	f.Helper()
	survey, err := auth.ReadSurvey(context.WithoutCancel(f.Context()), f.db, f.table)
	f.wantError(err, nil)
	return survey, placesOf(survey, ids...)
}

func placesOf(survey *auth.Survey, ids ...string) (places []auth.Place) {
	for _, place := range append(survey.Missing, survey.Stray...) {
		if slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(place.String(), id) }) {
			places = append(places, place)
		}
	}
	return places
}

// Between the survey and the repair the table may have changed.
func TestANeedlessRepairWritesNothing(t *testing.T) {
	f := newFixture(t)
	ctx, key := t.Context(), f.newBoundKey()
	f.rows.Delete(t, testkit.Key("workspace#"+string(f.workspace), "key#"+string(key.Hash)))
	_, missing := f.survey(string(key.Hash))
	if len(missing) != 1 {
		t.Fatalf("missing are %v", missing)
	}
	f.wantError(f.registry.Relist(ctx, missing[0]), nil)
	f.wantReason(key, auth.Disabled) // it may be half deleted
	f.wantError(f.registry.EnableKey(ctx, f.account, key.Hash), nil)
	f.wantError(f.registry.Relist(ctx, missing[0]), auth.ErrNeedless)
	f.wantError(f.registry.Unlist(ctx, missing[0]), auth.ErrNeedless)
	surveyed := auth.SurveyedKey{Key: key, Account: f.account}
	f.wantError(f.registry.DisableOrphan(ctx, surveyed), auth.ErrNeedless)
	f.wantError(f.registry.DisableStranded(ctx, surveyed), auth.ErrNeedless)
	f.wantReason(key, "")
	if _, places := f.survey(string(key.Hash)); len(places) > 0 {
		t.Errorf("an entry whose row is there was removed: %v", places)
	}
	f.rows.Delete(t, f.keyRow(key))
	f.wantError(f.registry.Relist(ctx, missing[0]), auth.ErrNeedless)
	f.wantError(f.registry.Unlist(ctx, missing[0]), nil)
	if _, stray := f.survey(string(key.Hash)); len(stray) != 1 || stray[0].PK != "account#"+string(f.account) {
		t.Errorf("stray are %v", stray)
	}

	for _, next := range []int64{3, 2, 3} {
		f.wantError(f.registry.RaiseCounter(ctx, f.workspace, "openai", next), nil)
	}
	f.wantError(f.registry.RaiseCounter(ctx, "nowhere", "openai", 1), nil)
	f.wantError(f.registry.ClearDefault(ctx, f.account, "another"), auth.ErrNeedless)
	f.wantError(f.registry.ClearDefault(ctx, f.account, f.workspace), auth.ErrNeedless)
	survey, _ := f.survey()
	if w := survey.Workspaces[f.workspace]; w.Next["openai"] != 3 || survey.Accounts[f.account].Default != f.workspace {
		t.Errorf("%+v of %+v", w, survey.Accounts[f.account])
	}
	f.rows.Set(t, f.workspaceRow(), "deleted_at", testkit.Number("1"))
	f.wantError(f.registry.ClearDefault(ctx, f.account, f.workspace), nil)
	if survey, _ = f.survey(); survey.Accounts[f.account].Default != "" || len(survey.Workspaces["nowhere"].Next) > 0 {
		t.Errorf("%+v", survey.Accounts[f.account])
	}
}

// A row counts whole or not at all: the decoder stops at the first fault, in the order
// of a map.
func TestAnUnreadableRowShowsNothing(t *testing.T) {
	f := newFixture(t)
	f.wantError(f.registry.RaiseCounter(t.Context(), f.workspace, "openai", 3), nil)
	f.rows.Set(t, f.workspaceRow(), "name", &types.AttributeValueMemberBOOL{})
	for range 10 {
		survey, _ := f.survey()
		if w := survey.Workspaces[f.workspace]; w.Fault == nil || w.Next != nil || w.Account != "" || w.Name != "" {
			t.Fatalf("%+v", w)
		}
	}
}

// List entries of an unreadable row are not stray.
func TestASurveyReportsUnreadableRows(t *testing.T) {
	f := newFixture(t)
	key := f.newBoundKey()
	f.rows.Set(t, f.keyRow(key), "disabled", testkit.Text("no"))
	f.rows.Set(t, f.workspaceRow(), "v", testkit.Number("3"))
	f.rows.Set(t, f.accountRow(), "v", testkit.Number("3"))
	f.rows.Set(t, testkit.Key("account#"+string(f.account), "key#"+string(key.Hash)), "v", testkit.Text("one"))
	survey, places := f.survey(string(f.workspace), string(key.Hash))
	if survey.Keys[key.Hash].Fault == nil || survey.Workspaces[f.workspace].Fault == nil || survey.Accounts[f.account].Fault == nil {
		t.Errorf("%v, %v, %v", survey.Keys[key.Hash], survey.Workspaces[f.workspace], survey.Accounts[f.account])
	}
	isOwn := func(p auth.Place) bool { return p.PK == "account#"+string(f.account) }
	if !slices.ContainsFunc(survey.Unknown, isOwn) || len(places) > 0 {
		t.Errorf("unknown %v, missing or stray %v", survey.Unknown, places)
	}
}

// A list entry belongs to an account or a workspace, and names a key or a workspace. A
// row that lacks a required attribute is at fault.
func TestASurveySortsItems(t *testing.T) {
	f := newFixture(t)
	id := string(f.account)
	for place, isEntry := range map[[2]string]bool{
		{"account#" + id, "key#" + id}: true, {"account#" + id, "workspace#" + id}: true, {"workspace#" + id, "key#" + id}: true,
		{"account#" + id, "job#" + id}: false, {"workspace#" + id, "account"}: false, {"account#" + id, "workspace"}: false,
		{"key#" + id, "key#" + id}: false, {"other#" + id, "workspace#" + id}: false,
	} {
		item := testkit.Key(place[0], place[1])
		item["v"] = testkit.Number("1")
		f.rows.Put(t, item)
		survey, places := f.survey(id)
		unknown := slices.ContainsFunc(survey.Unknown, func(p auth.Place) bool { return strings.Contains(p.String(), id) })
		if unknown == isEntry || (len(places) == 1) != isEntry {
			t.Errorf("%v: unknown %v, entries without a row %v", place, unknown, places)
		}
		f.rows.Delete(t, testkit.Key(place[0], place[1]))
	}
	sound := f.rows.Get(t, f.workspaceRow())
	for _, attribute := range []string{"v", "account", "next"} {
		lacking := maps.Clone(sound)
		delete(lacking, attribute)
		f.rows.Put(t, lacking)
		if survey, _ := f.survey(); survey.Workspaces[f.workspace].Fault == nil {
			t.Errorf("without %s: %+v", attribute, survey.Workspaces[f.workspace])
		}
	}
}
