package byok_test

import (
	"errors"
	"testing"
	"time"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/byok"
)

func TestCreateSurvivesALostAnswer(t *testing.T) {
	f := newFixture(t)
	d := f.newDraft()
	f.faults.Inject(faults.Rule{Operation: "PutItem", Attempt: 1, Fault: faults.LoseAnswer()})
	if err := f.store.Create(t.Context(), d); err != nil {
		t.Errorf("Create: %v", err)
	}
	f.faults.Heal()
	f.faults.Inject(faults.Rule{Operation: "PutItem", Fault: faults.Refuse()})
	if err := f.store.Create(t.Context(), f.newDraft()); err == nil {
		t.Error("no error though nothing could be stored")
	}
	if got := f.stored(); len(got) != 1 {
		t.Errorf("%d credentials are stored, want 1", len(got))
	}
}

func TestCreateOnceRecordsItsResponse(t *testing.T) {
	f := newFixture(t)
	id := newRequest()
	if got := f.createOnce(id, "response 1"); got != "" {
		t.Errorf("the first request gets %q", got)
	}
	again, err := f.store.Recall(t.Context(), id)
	if other, ok, refused := again.Replay([]byte("other")); err != nil || !errors.Is(refused, byok.ErrDifferentRequest) || ok || other.Response != nil {
		t.Errorf("another request: %+v, %v, %v, %v", other, ok, refused, err)
	}
	if got := f.createOnce(id, "response 2"); got != "response 1" {
		t.Errorf("a second request gets %q", got)
	}
	if got := f.stored(); len(got) != 1 {
		t.Errorf("%d credentials are stored, want 1", len(got))
	}
	// DynamoDB may keep the record after it expired.
	expires := time.Unix(f.clock.Add(25*time.Hour).Unix(), 0)
	*f.clock = expires.Add(-time.Second)
	if got := f.recall(id); got != "response 1" {
		t.Errorf("after a day: %q", got)
	}
	*f.clock = expires
	if recalled, created := f.recall(id), f.createOnce(id, "response 3"); recalled != "" || created != "" {
		t.Errorf("expired: recalled %q, created %q", recalled, created)
	}
}

// No local engine returns TransactionConflict by itself; DynamoDB does.
func TestCreateOnceRetriesConflicts(t *testing.T) {
	f := newFixture(t)
	conflict := faults.Cancel("None", "TransactionConflict")
	expired := faults.Cancel("None", "ConditionalCheckFailed") // by the time that it is read
	for call, fault := range []faults.Fault{conflict, faults.Cancel("TransactionConflict", ""), expired} {
		f.faults.Inject(faults.Rule{Operation: "TransactWriteItems", Call: call + 1, Fault: fault})
	}
	if got := f.createOnce(newRequest(), "response"); got != "" {
		t.Errorf("after three conflicts: %q", got)
	}
	// The conflict was with the same request, which succeeded.
	f.faults.Heal()
	id := newRequest()
	_ = f.createOnce(id, "winner")
	for _, fault := range []faults.Fault{conflict, faults.Cancel("ThrottlingError", "None")} {
		f.faults.Heal()
		f.faults.Inject(faults.Rule{Operation: "TransactWriteItems", Fault: fault})
		if got := f.createOnce(id, "loser"); got != "winner" {
			t.Errorf("after losing: %q", got)
		}
	}
	if got := f.stored(); len(got) != 2 {
		t.Errorf("%d credentials are stored, want 2", len(got))
	}
}

func TestCreateOnceReportsOtherFailures(t *testing.T) {
	f := newFixture(t)
	for _, reasons := range [][]string{{"ValidationError", "None"}, {"None", "ThrottlingError"}, {"ConditionalCheckFailed", "None"}, {"None", "None"}} {
		f.faults.Heal()
		f.faults.Inject(faults.Rule{Operation: "TransactWriteItems", Fault: faults.Cancel(reasons...)})
		if _, err := f.store.CreateOnce(t.Context(), f.newDraft(), newRequest(), nil, nil); err == nil {
			t.Errorf("%v: no error", reasons)
		}
	}
	if got := f.stored(); len(got) != 0 {
		t.Errorf("%d credentials are stored, want none", len(got))
	}
}

// An unreadable record may belong to this very request: it is neither replayed nor
// overwritten, and storing is not tried again.
func TestAnUnreadableRecordIsNeitherReplayedNorOverwritten(t *testing.T) {
	f := newFixture(t)
	for _, attribute := range []string{"v", "fingerprint"} {
		id := newRequest()
		_ = f.createOnce(id, "response")
		testkit.Rows{DB: f.db, Table: f.env.Tables.Control}.Set(t, testkit.Key(string(id)), attribute, testkit.Number("1"))
		stored := len(f.stored())
		for range 20 { // attributes are decoded in random order, up to the first error
			if found, err := f.store.Recall(t.Context(), id); err == nil {
				t.Fatalf("%s: recalled %+v", attribute, found)
			}
		}
		f.faults.Heal()
		if earlier, err := f.store.CreateOnce(t.Context(), f.newDraft(), id, fingerprint, []byte("another")); err == nil {
			t.Errorf("%s: created beside %+v", attribute, earlier)
		}
		for _, c := range f.faults.Calls() {
			if c.Operation == "TransactWriteItems" && c.Number > 1 {
				t.Errorf("%s: it was tried again", attribute)
			}
		}
		if got := len(f.stored()); got != stored {
			t.Errorf("%s: %d credentials are stored, want %d", attribute, got, stored)
		}
	}
}
