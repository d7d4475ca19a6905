package byok_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/byok"
)

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
		if earlier, err := f.store.CreateOnce(t.Context(), f.newDraft(), id, byok.Remembered{}, fingerprint, []byte("another")); err == nil {
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

// A refusal stops every copy of its request that began before it, and none that saw it.
// A copy that was faster prevails. A minute later it is gone.
func TestARefusal(t *testing.T) {
	f := newFixture(t)
	why := []byok.Problem{{Path: "/workspace_id", Message: "full"}}
	refuse := func(id byok.RequestID, earlier byok.Remembered) byok.Remembered {
		t.Helper()
		faster, err := f.store.Refuse(t.Context(), id, earlier, fingerprint, why)
		testkit.Must(t, err)
		return faster
	}
	create := func(id byok.RequestID, earlier byok.Remembered) byok.Remembered {
		t.Helper()
		faster, err := f.store.CreateOnce(t.Context(), f.newDraft(), id, earlier, fingerprint, []byte("response"))
		testkit.Must(t, err)
		return faster
	}
	isRefused := func(m byok.Remembered) {
		t.Helper()
		_, _, err := m.Replay(fingerprint)
		refusal, ok := errors.AsType[*byok.Refusal](err)
		_, _, other := m.Replay([]byte("another request's"))
		if !ok || !slices.Equal(refusal.Problems, why) || !errors.Is(other, byok.ErrDifferentRequest) {
			t.Errorf("replayed: %v; to another request: %v", err, other)
		}
	}
	seen := func(id byok.RequestID) byok.Remembered {
		t.Helper()
		m, err := f.store.Recall(t.Context(), id)
		if _, ok, replayErr := m.Replay(fingerprint); err != nil || ok || replayErr != nil {
			t.Fatalf("recalled %+v, %v, %v", m, err, replayErr)
		}
		return m
	}

	id, before := newRequest(), byok.Remembered{}
	_ = refuse(id, before)
	isRefused(create(id, before))
	isRefused(refuse(id, before))
	first := seen(id)
	_ = refuse(id, first)
	isRefused(create(id, first)) // it saw another one
	second := seen(id)
	f.faults.Inject(faults.Rule{Operation: "TransactWriteItems", Attempt: 1, Fault: faults.Cancel("None", "TransactionConflict")})
	isRefused(create(id, first)) // and finds that when it is in conflict
	f.faults.Heal()
	if _, ok, err := create(id, second).Replay(fingerprint); ok || err != nil {
		t.Errorf("a new try: %t, %v", ok, err)
	}
	if replayed, ok, err := refuse(id, second).Replay(fingerprint); !ok || err != nil || string(replayed.Response) != "response" {
		t.Errorf("refused after a copy was stored: %+v, %t, %v", replayed, ok, err)
	}

	id = newRequest()
	_ = refuse(id, before)
	*f.clock = f.clock.Add(61 * time.Second)
	if got := f.replay(create(id, before), nil); got != "" || len(f.rows()) != 2 {
		t.Errorf("replayed %q, %d credentials are stored", got, len(f.rows()))
	}
}
