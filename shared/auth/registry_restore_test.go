package auth_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/auth"
)

// survey reads the table and keeps the places that are about the test's account,
// workspace or key.
func (a *access) survey(about ...string) (*auth.Survey, []auth.Place) {
	a.Helper()
	survey, err := auth.ReadSurvey(a.Context(), a.db, a.table)
	if err != nil {
		a.Fatal(err)
	}
	var places []auth.Place
	for _, place := range append(survey.Missing, survey.Stray...) {
		for _, id := range about {
			if strings.Contains(place.String(), id) {
				places = append(places, place)
			}
		}
	}
	return survey, places
}

func (a *access) remove(pk, sk string) {
	a.Helper()
	_, err := a.db.DeleteItem(a.Context(), &dynamodb.DeleteItemInput{
		TableName: &a.table, Key: map[string]types.AttributeValue{"pk": text(pk), "sk": text(sk)},
	})
	if err != nil {
		a.Fatal(err)
	}
}

// Between the survey and the repair the table may have changed: a repair that it
// does not need any more writes nothing.
func TestARepairThatIsNotNeededWritesNothing(t *testing.T) {
	a := newAccess(t)
	ctx, row := t.Context(), "workspace#"+string(a.workspace)
	key := a.bound(a.workspace)
	a.remove(row, "key#"+string(key.Hash))
	_, missing := a.survey(string(key.Hash))
	if len(missing) != 1 {
		t.Fatalf("missing are %v", missing)
	}
	for range 2 {
		a.wantError(a.registry.Relist(ctx, missing[0]), nil)
	}
	if reason := a.reason(key); reason != auth.Disabled {
		t.Errorf("a key that was half deleted is %q", reason)
	}
	a.wantError(a.registry.EnableKey(ctx, a.account, key.Hash), nil)
	a.wantError(a.registry.Relist(ctx, missing[0]), nil)
	a.wantError(a.registry.Unlist(ctx, missing[0]), nil)
	if reason := a.reason(key); reason != "" {
		t.Errorf("a key that is in its lists is %q", reason)
	}
	if _, places := a.survey(string(key.Hash)); len(places) > 0 {
		t.Errorf("an entry whose row is there was removed: %v", places)
	}
	a.remove("key#"+string(key.Hash), "key")
	a.wantError(a.registry.Relist(ctx, missing[0]), nil)
	a.wantError(a.registry.Unlist(ctx, missing[0]), nil)
	if _, stray := a.survey(string(key.Hash)); len(stray) != 1 || stray[0].PK != "account#"+string(a.account) {
		t.Errorf("stray are %v", stray)
	}

	for _, next := range []int64{3, 2, 3} {
		a.wantError(a.registry.RaiseCounter(ctx, a.workspace, "openai", next), nil)
	}
	a.wantError(a.registry.RaiseCounter(ctx, "nowhere", "openai", 1), nil)
	a.wantError(a.registry.ClearDefault(ctx, a.account, "another"), nil)
	survey, _ := a.survey()
	if w := survey.Workspaces[a.workspace]; w.Next["openai"] != 3 || survey.Accounts[a.account].Default != a.workspace {
		t.Errorf("%+v of %+v", w, survey.Accounts[a.account])
	}
	a.wantError(a.registry.ClearDefault(ctx, a.account, a.workspace), nil)
	if survey, _ = a.survey(); survey.Accounts[a.account].Default != "" || len(survey.Workspaces["nowhere"].Next) > 0 {
		t.Errorf("%+v", survey.Accounts[a.account])
	}
}

// A row that cannot be read is no reason to take what names it for stray.
func TestASurveyNamesWhatCannotBeRead(t *testing.T) {
	a := newAccess(t)
	key := a.bound(a.workspace)
	a.spoil("key#"+string(key.Hash), "key", "disabled", text("no"))
	a.spoil("workspace#"+string(a.workspace), "workspace", "v", number("3"))
	a.spoil("account#"+string(a.account), "account", "v", number("3"))
	a.spoil("account#"+string(a.account), "key#"+string(key.Hash), "v", text("one"))
	survey, places := a.survey(string(a.workspace), string(key.Hash))
	if survey.Keys[key.Hash].Fault == nil || survey.Workspaces[a.workspace].Fault == nil || survey.Accounts[a.account].Fault == nil {
		t.Errorf("%v, %v, %v", survey.Keys[key.Hash], survey.Workspaces[a.workspace], survey.Accounts[a.account])
	}
	unknown := 0
	for _, place := range survey.Unknown {
		if place.PK == "account#"+string(a.account) {
			unknown++
		}
	}
	if unknown != 1 || len(places) > 0 {
		t.Errorf("unknown %v, missing or stray %v", survey.Unknown, places)
	}
}

func TestASurveyOrRepairOutOfReachSaysSo(t *testing.T) {
	a := newAccess(t)
	key := a.bound(a.workspace)
	a.remove("workspace#"+string(a.workspace), "key#"+string(key.Hash))
	_, missing := a.survey(string(key.Hash))
	for _, operation := range []string{"Scan", "UpdateItem", "TransactWriteItems"} {
		a.faults.Inject(faults.Rule{Operation: operation, Fault: faults.Refuse()})
	}
	if survey, err := auth.ReadSurvey(t.Context(), a.db, a.table); err == nil {
		t.Errorf("read %+v", survey)
	}
	for name, err := range map[string]error{
		"relist": a.registry.Relist(t.Context(), missing[0]), "unlist": a.registry.Unlist(t.Context(), missing[0]),
		"clear": a.registry.ClearDefault(t.Context(), a.account, a.workspace),
		"raise": a.registry.RaiseCounter(t.Context(), a.workspace, "openai", 1),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
