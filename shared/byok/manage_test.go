package byok_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// create stores a credential in the vault's workspace.
func (v *vault) create() byok.Credential {
	v.Helper()
	d := v.draft()
	if err := v.Create(v.Context(), d); err != nil {
		v.Fatal(err)
	}
	return d.Credential
}

// manager passes through the vault's faults.
func (v *vault) manager() *byok.Manager {
	config := v.engines.Config
	config.HTTPClient = v.broken
	return byok.NewManager(dynamodb.NewFromConfig(config), v.engines.Tables.Credentials)
}

func TestListShowsAllButTheSeal(t *testing.T) {
	v := newVault(t)
	want := []byok.Credential{v.create()}
	v.broken.Heal()
	got, err := v.manager().List(t.Context(), v.workspace)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("credentials (-want +got):\n%s", diff)
	}
	for _, c := range v.broken.Calls() {
		if asked, err := json.Marshal(c.Input); err != nil || strings.Contains(string(asked), "seal") {
			t.Errorf("the list asks for the seal: %s", asked)
		}
		if c.Input["ConsistentRead"] != true {
			t.Errorf("the list may be out of date: %v", c.Input)
		}
	}
	if none, err := v.manager().List(t.Context(), ids.New[ids.Workspace]()); err != nil || len(none) != 0 {
		t.Errorf("an unknown workspace has %v, %v", none, err)
	}
}

func TestCredentialsAreListedInTheOrderInWhichTheyAreTried(t *testing.T) {
	v := newVault(t)
	var want, got []string
	for _, provider := range []string{"anthropic", "openai"} {
		for order := range int64(5) {
			d := v.draft()
			d.Provider, d.SortOrder = provider, 4-order
			if err := v.Create(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			want = append(want, fmt.Sprint(provider, order))
		}
	}
	listed, err := v.manager().List(t.Context(), v.workspace)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range listed {
		got = append(got, fmt.Sprint(c.Provider, c.SortOrder))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestWhatAManagerCannotReachIsNotAbsent(t *testing.T) {
	v := newVault(t)
	c, m, ctx := v.create(), v.manager(), t.Context()
	for _, operation := range []string{"Query", "UpdateItem", "DeleteItem"} {
		v.broken.Inject(faults.Rule{Operation: operation, Fault: faults.Refuse()})
	}
	_, list := m.List(ctx, v.workspace)
	_, purge := m.Purge(ctx, v.workspace)
	for name, err := range map[string]error{
		"List": list, "Purge": purge, "Delete": m.Delete(ctx, v.workspace, c.ID),
		"Disable": m.Disable(ctx, v.workspace, c.ID), "Enable": m.Enable(ctx, v.workspace, c.ID),
	} {
		if err == nil || errors.Is(err, byok.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnUnreadableCredentialIsNotLeftOutOfTheList(t *testing.T) {
	r := newRemoval(t)
	r.create()
	r.tamper(func(row map[string]types.AttributeValue) { row["disabled"] = &types.AttributeValueMemberS{Value: "no"} })
	if got, err := r.manager().List(t.Context(), r.workspace); err == nil {
		t.Errorf("listed: %+v", got)
	}
}

func TestACredentialIsDisabledEnabledAndDeleted(t *testing.T) {
	v := newVault(t)
	m, c := v.manager(), v.create()
	disabled := func() bool { return v.stored()[0].Disabled }
	for range 2 { // twice is as good as once
		if err := m.Disable(t.Context(), v.workspace, c.ID); err != nil || !disabled() {
			t.Errorf("Disable: %v, disabled: %v", err, disabled())
		}
	}
	for range 2 {
		if err := m.Enable(t.Context(), v.workspace, c.ID); err != nil || disabled() {
			t.Errorf("Enable: %v, disabled: %v", err, disabled())
		}
	}
	if err := m.Delete(t.Context(), v.workspace, c.ID); err != nil || len(v.stored()) != 0 {
		t.Errorf("Delete: %v, left: %v", err, v.stored())
	}
}

func TestAnotherWorkspacesCredentialIsNotFound(t *testing.T) {
	v, other := newVault(t), newVault(t)
	c := v.create()
	for name, err := range map[string]error{
		"Disable": v.manager().Disable(t.Context(), other.workspace, c.ID),
		"Enable":  v.manager().Enable(t.Context(), other.workspace, c.ID),
		"Delete":  v.manager().Delete(t.Context(), other.workspace, c.ID),
	} {
		if !errors.Is(err, byok.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", name, err)
		}
	}
	if diff := cmp.Diff([]byok.Credential{c}, v.stored()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestPurgeRemovesEveryCredentialOfOneWorkspace(t *testing.T) {
	v, other := newVault(t), newVault(t)
	other.create()
	const total = 60 // more than two batches
	for range total {
		v.create()
	}
	v.broken.Inject(faults.Rule{Operation: "BatchWriteItem", Call: 2, Fault: faults.Refuse()})
	before, err := v.manager().Purge(t.Context(), v.workspace)
	if err == nil {
		t.Error("no error though a batch could not be written")
	}
	v.broken.Heal()
	v.broken.Inject(faults.Rule{Operation: "BatchWriteItem", Call: 1, Fault: faults.Unprocessed()})
	after, err := v.manager().Purge(t.Context(), v.workspace)
	if err != nil || before+after != total {
		t.Errorf("purged %d and %d, %v; want %d in all", before, after, err, total)
	}
	if left := v.stored(); len(left) != 0 {
		t.Errorf("%d credentials left", len(left))
	}
	if len(other.stored()) != 1 {
		t.Error("another workspace lost its credential")
	}
}
