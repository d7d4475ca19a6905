package byok_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/byok"
)

func TestASurveyHasEveryCredentialAndNoSeal(t *testing.T) {
	r := newRemoval(t)
	config := r.engines.Config
	config.HTTPClient = r.broken
	db := dynamodb.NewFromConfig(config)
	c := r.create()
	survey := func() (own []byok.Placement) {
		t.Helper()
		all, err := byok.Survey(t.Context(), db, r.engines.Tables.Credentials)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			if p.Workspace == r.workspace {
				own = append(own, p)
			}
		}
		return own
	}
	want := byok.Placement{Workspace: r.workspace, ID: c.ID, Account: r.account, Provider: c.Provider, SortOrder: c.SortOrder}
	if got := survey(); len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, call := range r.broken.Calls() {
		if names, _ := call.Input["ExpressionAttributeNames"].(map[string]any); call.Operation == "Scan" {
			for _, name := range names {
				if name == "seal" {
					t.Error("the seal is read")
				}
			}
		}
	}
	r.tamper(func(row map[string]types.AttributeValue) {
		row["sort_order"] = &types.AttributeValueMemberS{Value: "first"}
	})
	if got := survey(); len(got) != 1 || !got[0].Unreadable || got[0].ID != c.ID {
		t.Errorf("of an unreadable one: %+v", got)
	}
	r.broken.Inject(faults.Rule{Operation: "Scan", Fault: faults.Refuse()})
	if got, err := byok.Survey(t.Context(), db, r.engines.Tables.Credentials); err == nil {
		t.Errorf("out of reach: %+v", got)
	}
}
