package byok_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

func TestPagesListEachWrappedKeyOnceAndNoSecret(t *testing.T) {
	f := newFixture(t)
	want := map[ids.Credential]string{}
	for range 60 { // more than a page
		want[f.newCredential().ID] = f.env.Tables.SealingKey
	}
	got := map[ids.Credential]string{}
	for _, w := range f.wrappedKeys() {
		if got[w.ID] != "" {
			t.Errorf("%s is listed twice", w.ID)
		}
		got[w.ID] = w.KeyARN
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	for _, c := range f.faults.Calls() {
		if c.Operation != "Scan" {
			continue
		}
		asked := fmt.Sprint(c.Input["ProjectionExpression"])
		if !strings.HasSuffix(asked, "#seal.#format, #seal.#key_arn, #seal.#wrapped_key") || c.Input["ConsistentRead"] != true || c.Input["Limit"] != 50.0 {
			t.Errorf("a page asks for %v", c.Input)
		}
	}
}

func TestRewrapChangesTheWrappedKeyAlone(t *testing.T) {
	f := newFixture(t)
	w, next := f.newWrappedKey(), f.newKey()
	want := f.rows()
	if got, err := f.rewraps.Rewrap(t.Context(), w, f.rewrapper(next)); got != byok.Moved || err != nil {
		t.Fatalf("%v, %v", got, err)
	}
	f.stored() // opens it
	got := f.rows()
	want[0].Sealed.KeyARN, want[0].Sealed.WrappedKey = next, got[0].Sealed.WrappedKey
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, w := range map[string]byok.WrappedKey{"the same again": w, "as it is now": f.wrappedKeys()[0]} {
		if got, err := f.rewraps.Rewrap(t.Context(), w, f.rewrapper(next)); got != byok.AlreadyThere || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestRewrapReportsAReadThatFails(t *testing.T) {
	f := newFixture(t)
	w := f.newWrappedKey()
	f.faults.Inject(faults.Rule{Operation: "UpdateItem", Attempt: 1, Fault: faults.LoseAnswer()})
	f.faults.Inject(faults.Rule{Operation: "GetItem", Fault: faults.Refuse()})
	if got, err := f.rewraps.Rewrap(t.Context(), w, f.rewrapper(f.newKey())); err == nil {
		t.Errorf("%v", got)
	}
}

func TestRewrapOfACredentialThatChangesInBetween(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(f *fixture, w byok.WrappedKey, next string)
		want      byok.RewrapOutcome
	}{
		"deleted": {func(f *fixture, w byok.WrappedKey, _ string) {
			kit.Must(f, f.manager.Delete(f.Context(), w.Workspace, w.ID))
		}, byok.Changed},
		"disabled": {func(f *fixture, _ byok.WrappedKey, _ string) {
			f.rewriteRow(func(row kit.Row) { row["disabled"] = kit.Bool(true) })
		}, byok.Moved},
		"moved by another run": {func(f *fixture, w byok.WrappedKey, next string) {
			f.move(w, f.env.Tables.SealingKey, next)
		}, byok.AlreadyThere},
		"moved elsewhere and back": {func(f *fixture, w byok.WrappedKey, _ string) {
			key := f.newKey()
			f.move(w, f.env.Tables.SealingKey, key)
			f.move(f.wrappedKeys()[0], key, f.env.Tables.SealingKey)
		}, byok.Changed},
		"given another key's name": {func(f *fixture, _ byok.WrappedKey, _ string) {
			f.rewriteRow(nameAnotherKey)
		}, byok.Changed},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w, next := f.newWrappedKey(), f.newKey()
			f.faults.Inject(faults.Rule{Operation: "UpdateItem", Fault: func(_ *http.Request, apply faults.Apply) (*http.Response, error) {
				c.meanwhile(f, w, next)
				return apply()
			}})
			if got, err := f.rewraps.Rewrap(t.Context(), w, f.rewrapper(next)); got != c.want || err != nil {
				t.Errorf("%v, %v; want %v", got, err, c.want)
			}
			for _, c := range f.faults.Calls() {
				if c.Operation == "GetItem" && c.Input["ConsistentRead"] != true {
					t.Errorf("an inconsistent read: %v", c.Input)
				}
			}
			if name == "given another key's name" {
				return // no key opens it any more
			}
			if left := f.stored(); (len(left) == 0) != (name == "deleted") {
				t.Errorf("%d credentials left", len(left))
			}
		})
	}
}

func nameAnotherKey(row kit.Row) {
	row["seal"].(*types.AttributeValueMemberM).Value["key_arn"] = kit.Text("another")
}

// An attacker with access to the table may have made these rows.
func TestRewrapRefusesForgedRows(t *testing.T) {
	for name, c := range map[string]struct {
		change func(row kit.Row)
		want   error
	}{
		"copied to another credential": {func(row kit.Row) { row["sk"] = kit.Text("credential#x") }, calls.ErrDamaged},
		"as another credential":        {func(row kit.Row) { row["sk"], row["id"] = kit.Text("credential#x"), kit.Text("x") }, seal.ErrDataKey},
		"as another account's":         {func(row kit.Row) { row["account"] = kit.Text("x") }, seal.ErrDataKey},
		"under the attacker's key":     {nameAnotherKey, seal.ErrKey},
		"of another version":           {func(row kit.Row) { row["v"] = kit.Number("2") }, calls.ErrDamaged},
		"without a seal":               {func(row kit.Row) { delete(row, "seal") }, seal.ErrFormat},
		"of another type":              {func(row kit.Row) { row["id"] = &types.AttributeValueMemberL{} }, calls.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.newCredential()
			f.rewriteRow(c.change)
			next := f.newKey()
			w := f.wrappedKeys()[0]
			if got, err := f.rewraps.Rewrap(t.Context(), w, f.rewrapper(next)); !errors.Is(err, c.want) || got != 0 || w.ID == "" {
				t.Errorf("%v, %v; want %v", got, err, c.want)
			}
		})
	}
}
