package byok_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

func TestRewrapChangesTheWrappingAlone(t *testing.T) {
	r := newRemoval(t)
	w := r.one()
	before, sealsBefore, err := r.Stored(t.Context(), r.db, r.workspace)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Rewrap(t.Context(), w, r.to(r.next)); got != byok.Moved || err != nil {
		t.Fatalf("%v, %v", got, err)
	}
	after := r.stored() // opens it, too
	_, seals, err := r.Stored(t.Context(), r.db, r.workspace)
	if err != nil {
		t.Fatal(err)
	}
	sealsBefore[0].KeyARN, sealsBefore[0].WrappedKey = r.next, seals[0].WrappedKey
	if diff := cmp.Diff(before, after) + cmp.Diff(sealsBefore, seals); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	for name, w := range map[string]byok.Wrapping{"the same once more": w, "as it is now": r.wrappings()[0]} {
		if got, err := r.Rewrap(t.Context(), w, r.to(r.next)); got != byok.AlreadyThere || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Each call, with each of what can come of it. Whatever does, the credential
// opens, and a second run ends under the other key.
func TestRewrapSurvivesEveryFault(t *testing.T) {
	for _, operation := range []string{"ReEncrypt", "UpdateItem"} {
		for name, c := range map[string]struct {
			rule  faults.Rule
			moved bool // by the first run, which then says so
		}{
			"not applied once":       {faults.Rule{Attempt: 1, Fault: faults.Refuse()}, true},
			"not applied":            {faults.Rule{Fault: faults.Refuse()}, false},
			"answer lost once":       {faults.Rule{Attempt: 1, Fault: faults.LoseAnswer()}, true},
			"every answer lost":      {faults.Rule{Fault: faults.LoseAnswer()}, false},
			"throttled once":         {faults.Rule{Attempt: 1, Fault: faults.Throttle()}, true},
			"throttled":              {faults.Rule{Fault: faults.Throttle()}, false},
			"answer cut":             {faults.Rule{Fault: faults.CutAnswer()}, false},
			"answered with nonsense": {faults.Rule{Fault: faults.Garble()}, false},
			"answered with nothing":  {faults.Rule{Fault: faults.EmptyAnswer()}, operation == "UpdateItem"}, // which is enough
		} {
			t.Run(operation+" "+name, func(t *testing.T) {
				r := newRemoval(t)
				w := r.one()
				c.rule.Operation = operation
				r.broken.Inject(c.rule)
				got, err := r.Rewrap(t.Context(), w, r.to(r.next))
				if c.moved && (got != byok.Moved || err != nil) || !c.moved && err == nil && got != byok.Moved {
					t.Errorf("%v, %v", got, err)
				}
				r.stored()
				r.broken.Heal()
				if err == nil && r.under(w.ID) != r.next {
					t.Errorf("%v, and it is under %s", got, r.under(w.ID))
				}
				if got, err := r.Rewrap(t.Context(), r.wrappings()[0], r.to(r.next)); err != nil || c.moved && got != byok.AlreadyThere {
					t.Errorf("second run: %v, %v", got, err)
				}
				if r.stored(); r.under(w.ID) != r.next {
					t.Errorf("it is under %s", r.under(w.ID))
				}
			})
		}
	}
}

func TestALostAnswerThatCannotBeLookedInto(t *testing.T) {
	r := newRemoval(t)
	w := r.one()
	r.broken.Inject(faults.Rule{Operation: "UpdateItem", Attempt: 1, Fault: faults.LoseAnswer()})
	r.broken.Inject(faults.Rule{Operation: "GetItem", Fault: faults.Refuse()})
	if got, err := r.Rewrap(t.Context(), w, r.to(r.next)); err == nil {
		t.Errorf("%v", got)
	}
}

func TestAKeyThatCannotBeUsed(t *testing.T) {
	for _, which := range []string{"old", "next"} {
		r := newRemoval(t)
		// The engines' own key is other tests' too.
		old := r.newKey()
		rewrapper := seal.NewRewrapper(r.kms, r.next, old)
		w := r.one()
		if got, err := r.Rewrap(t.Context(), w, r.to(old)); got != byok.Moved {
			t.Fatalf("%v, %v", got, err)
		}
		w = r.wrappings()[0]
		unusable := map[string]string{"old": old, "next": r.next}[which]
		if _, err := r.kms.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &unusable}); err != nil {
			t.Fatal(err)
		}
		got, err := r.Rewrap(t.Context(), w, rewrapper)
		if _, ok := errors.AsType[smithy.APIError](err); !ok || got != 0 || r.under(w.ID) != old {
			t.Errorf("%s disabled: %v, %v, under %s", which, got, err, r.under(w.ID))
		}
		if _, err := r.kms.EnableKey(t.Context(), &kms.EnableKeyInput{KeyId: &unusable}); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Rewrap(t.Context(), w, rewrapper); got != byok.Moved || err != nil {
			t.Errorf("%s enabled: %v, %v", which, got, err)
		}
		r.stored()
	}
}

func TestACredentialThatChangesMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*removal, byok.Wrapping)
		want      byok.Rewrapped
	}{
		"deleted": {func(r *removal, w byok.Wrapping) {
			if err := byok.NewManager(r.db, r.engines.Tables.Credentials).Delete(r.Context(), w.Workspace, w.ID); err != nil {
				r.Error(err)
			}
		}, byok.Overtaken},
		"moved by another run": {func(r *removal, w byok.Wrapping) { r.moveFor(w, r.next) }, byok.AlreadyThere},
		"moved elsewhere":      {func(r *removal, w byok.Wrapping) { r.moveFor(w, r.newKey()) }, byok.Overtaken},
		"moved elsewhere and back": {func(r *removal, w byok.Wrapping) {
			key := r.newKey()
			r.moveFor(w, key)
			other := byok.NewWrappings(r.db, r.engines.Tables.Credentials)
			if got, err := other.Rewrap(r.Context(), r.wrappings()[0], seal.NewRewrapper(r.kms, r.engines.KeyARN, key)); got != byok.Moved || err != nil {
				r.Errorf("back: %v, %v", got, err)
			}
		}, byok.Overtaken},
		"disabled": {func(r *removal, w byok.Wrapping) {
			if err := byok.NewManager(r.db, r.engines.Tables.Credentials).Disable(r.Context(), w.Workspace, w.ID); err != nil {
				r.Error(err)
			}
		}, byok.Moved},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemoval(t)
			w := r.one()
			r.broken.Inject(faults.Rule{Operation: "UpdateItem", Fault: func(_ *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
				c.meanwhile(r, w)
				return apply()
			}})
			if got, err := r.Rewrap(t.Context(), w, r.to(r.next)); got != c.want || err != nil {
				t.Errorf("%v, %v; want %v", got, err, c.want)
			}
			for _, c := range r.broken.Calls() {
				if c.Operation == "GetItem" && c.Input["ConsistentRead"] != true {
					t.Errorf("it may look at what was there before: %v", c.Input)
				}
			}
			if left := r.stored(); (len(left) == 0) != (name == "deleted") {
				t.Errorf("%d credentials left", len(left))
			}
		})
	}
}

// moveFor is another run, at the same time.
func (r *removal) moveFor(w byok.Wrapping, key string) {
	other := byok.NewWrappings(r.db, r.engines.Tables.Credentials)
	if got, err := other.Rewrap(r.Context(), w, seal.NewRewrapper(r.kms, key, r.engines.KeyARN)); got != byok.Moved || err != nil {
		r.Errorf("the other run: %v, %v", got, err)
	}
}

func TestAWrappingSaidToBeOfAnotherKeyMeanwhile(t *testing.T) {
	r := newRemoval(t)
	w, another := r.one(), r.newKey()
	r.tamper(func(row map[string]types.AttributeValue) {
		row["seal"].(*types.AttributeValueMemberM).Value["key_arn"] = &types.AttributeValueMemberS{Value: another}
	})
	if got, err := r.Rewrap(t.Context(), w, r.to(r.next)); got != byok.Overtaken || err != nil || r.under(w.ID) != another {
		t.Errorf("%v, %v, under %s", got, err, r.under(w.ID))
	}
}

// Rows that somebody who can write the table has made up.
func TestMadeUpRowsAreNotVouchedFor(t *testing.T) {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	for name, c := range map[string]struct {
		change func(*removal, map[string]types.AttributeValue)
		want   error
	}{
		"copied to another credential": {func(_ *removal, row map[string]types.AttributeValue) {
			row["sk"] = text("credential#" + string(ids.New[ids.Credential]()))
		}, byok.ErrUnreadable},
		"posing as another credential": {func(_ *removal, row map[string]types.AttributeValue) {
			id := string(ids.New[ids.Credential]())
			row["sk"], row["id"] = text("credential#"+id), text(id)
		}, seal.ErrDataKey},
		"posing as another account's": {func(_ *removal, row map[string]types.AttributeValue) {
			row["account"] = text(string(ids.New[ids.Account]()))
		}, seal.ErrDataKey},
		"under a key of his own": {func(r *removal, row map[string]types.AttributeValue) {
			row["seal"].(*types.AttributeValueMemberM).Value["key_arn"] = text(r.newKey())
		}, seal.ErrKey},
		"of another version": {func(_ *removal, row map[string]types.AttributeValue) {
			row["v"] = &types.AttributeValueMemberN{Value: "2"}
		}, byok.ErrUnreadable},
		"without a seal": {func(_ *removal, row map[string]types.AttributeValue) { delete(row, "seal") }, seal.ErrFormat},
		"of another shape": {func(_ *removal, row map[string]types.AttributeValue) {
			row["id"] = &types.AttributeValueMemberL{}
		}, byok.ErrUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemoval(t)
			r.create()
			r.tamper(func(row map[string]types.AttributeValue) { c.change(r, row) })
			for _, w := range r.wrappings() {
				if got, err := r.Rewrap(t.Context(), w, r.to(r.next)); !errors.Is(err, c.want) || got != 0 {
					t.Errorf("%v, %v; want %v", got, err, c.want)
				}
			}
		})
	}
}

// tamper rewrites the one row of the workspace behind the service's back.
func (r *removal) tamper(change func(map[string]types.AttributeValue)) {
	r.Helper()
	ctx, table := context.WithoutCancel(r.Context()), r.engines.Tables.Credentials
	own := map[string]types.AttributeValue{":pk": &types.AttributeValueMemberS{Value: "workspace#" + string(r.workspace)}}
	out, err := r.db.Query(ctx, &dynamodb.QueryInput{
		TableName: &table, KeyConditionExpression: aws.String("pk = :pk"), ExpressionAttributeValues: own,
	})
	if err != nil || len(out.Items) != 1 {
		r.Fatalf("%+v, %v", out, err)
	}
	row := out.Items[0]
	key := map[string]types.AttributeValue{"pk": row["pk"], "sk": row["sk"]}
	if _, err := r.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &table, Key: key}); err != nil {
		r.Fatal(err)
	}
	change(row)
	if _, err := r.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: row}); err != nil {
		r.Fatal(err)
	}
}
