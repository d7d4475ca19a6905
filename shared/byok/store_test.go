package byok_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/secret"
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

// If an attempt was applied and its response lost, the record found is this request's
// own.
func TestALostResponseIsNotAReplay(t *testing.T) {
	f := newFixture(t)
	f.faults.Inject(faults.Rule{Operation: "TransactWriteItems", Call: 1, Attempt: 1, Fault: faults.LoseAnswer()})
	f.faults.Inject(faults.Rule{Operation: "TransactWriteItems", Call: 1, Fault: faults.Cancel("ThrottlingError", "None")})
	faster, err := f.store.CreateOnce(t.Context(), f.newDraft(), newRequest(), byok.Remembered{}, fingerprint, []byte("{}"))
	if _, ok, replayErr := faster.Replay(fingerprint); err != nil || ok || replayErr != nil || len(f.stored()) != 1 {
		t.Errorf("%v; a replay: %t, %v; %d credentials are stored", err, ok, replayErr, len(f.stored()))
	}
}

// An unreadable record may belong to this same request: it is neither replayed nor
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
// A copy that was stored first prevails. The refusal is gone after a minute.
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
	isRefused(create(id, first)) // it saw another refusal
	second := seen(id)
	f.faults.Inject(faults.Rule{Operation: "TransactWriteItems", Attempt: 1, Fault: faults.Cancel("None", "TransactionConflict")})
	isRefused(create(id, first)) // and finds the refusal after a conflict
	f.faults.Heal()
	if _, ok, err := create(id, second).Replay(fingerprint); ok || err != nil {
		t.Errorf("a new try: %t, %v", ok, err)
	}
	if replayed, ok, err := refuse(id, second).Replay(fingerprint); !ok || err != nil || string(replayed.Response) != "response" {
		t.Errorf("refused after a copy was stored: %+v, %t, %v", replayed, ok, err)
	}

	// A late copy of a refused request does not stop a different one, and stays stopped.
	for _, conflict := range []bool{false, true} {
		f.faults.Heal()
		if conflict {
			f.faults.Inject(faults.Rule{Operation: "TransactWriteItems", Call: 1, Fault: faults.Cancel("None", "TransactionConflict")})
		}
		id, other := newRequest(), []byte("another request's")
		_ = refuse(id, before)
		faster, err := f.store.CreateOnce(t.Context(), f.newDraft(), id, before, other, []byte("response"))
		if _, ok, replayErr := faster.Replay(other); err != nil || ok || replayErr != nil {
			t.Errorf("a different request: %v; a replay: %t, %v", err, ok, replayErr)
		}
		if _, _, err := create(id, before).Replay(fingerprint); !errors.Is(err, byok.ErrDifferentRequest) {
			t.Errorf("then a copy of the refused one: %v", err)
		}
	}
	f.faults.Heal()

	stored := len(f.rows())
	id = newRequest()
	_ = refuse(id, before)
	*f.clock = f.clock.Add(30 * time.Second) // more than a request takes plus the difference of clocks
	isRefused(create(id, before))
	*f.clock = f.clock.Add(31 * time.Second)
	if got := f.replay(create(id, before), nil); got != "" || len(f.rows()) != stored+1 {
		t.Errorf("replayed %q, %d credentials are stored", got, len(f.rows()))
	}

	// An earlier refusal may expire while another one is being stored.
	id = newRequest()
	_ = refuse(id, before)
	*f.clock = f.clock.Add(59 * time.Second)
	f.faults.Inject(faults.Rule{Operation: "PutItem", Fault: faults.Then(func() { *f.clock = f.clock.Add(2 * time.Second) })})
	_ = refuse(id, before)
	isRefused(create(id, before))
}

// fill stores rows of so many bytes each.
func (f *fixture) fill(rows, bytes int) {
	f.Helper()
	table := testkit.Rows{DB: f.db, Table: f.env.Tables.Credentials}
	for range rows {
		row := testkit.Key("workspace#"+string(f.workspace), "credential#"+string(ids.New[ids.Credential]()))
		row["text"] = testkit.Text(strings.Repeat("x", bytes))
		table.Put(f, row)
	}
}

// A router refuses a workspace whose credentials do not fit into one page, however few they
// are. The operator can still list and delete them.
func TestARouterReadsOnePage(t *testing.T) {
	f := newFixture(t)
	last := f.newCredential()
	read := func() []error {
		_, readErr := f.read()
		_, settingsErr := f.manager.ReadSettings(t.Context(), f.account, f.workspace)
		return []error{readErr, settingsErr}
	}
	f.fill(2*byok.MaxStored, 1)
	for _, err := range read() {
		if errors.Is(err, byok.ErrTooMany) {
			t.Errorf("many small ones: %v", err)
		}
	}
	f.fill(4, 350_000) // an engine may end a page after the row that passes 1 MB, so one more row follows
	for _, err := range read() {
		if !errors.Is(err, byok.ErrTooMany) {
			t.Errorf("more than a page: %v", err)
		}
	}
	all, err := f.manager.List(t.Context(), f.workspace)
	if err != nil || !slices.ContainsFunc(all, func(c byok.Credential) bool { return c.ID == last.ID }) {
		t.Errorf("listed %d, %v", len(all), err)
	}
}

func (f *fixture) read() ([]byok.Stored, error) {
	return byok.ReadAll(f.Context(), f.db, f.env.Tables.Credentials, f.account, f.workspace)
}

// fill sets a setting of any kind to a large value. A row grows by at least grows bytes.
// known is false if no value fits.
func fill(setting reflect.Value) (grows int64, known bool) {
	const elements, number = 20, 1234567890123456
	list := func(element any) []any { return slices.Repeat([]any{element}, elements) }
	for _, c := range []struct {
		value any
		grows int64
	}{
		{strings.Repeat("é", 1000), 1900},
		{list(strings.Repeat("é", 255)), elements * 510},
		{list(number), elements * 9},
		{number, 0}, // the zero takes bytes too
		{true, 0},
	} {
		encoded, err := json.Marshal(c.value)
		if err == nil && json.Unmarshal(encoded, setting.Addr().Interface()) == nil {
			return c.grows, true
		}
	}
	return 0, false
}

// Size is never less than DynamoDB counts, and at most 700 bytes more.
func TestSizesAreCounted(t *testing.T) {
	largest := validCredential()
	largest.Key = secret.New([]byte(strings.Repeat("k", 32768)))
	for field, value := range reflect.ValueOf(&largest.Settings).Elem().Fields() {
		before := largest.Size()
		least, known := fill(value)
		if counted := largest.Size() - before; !known || counted < least {
			t.Errorf("Size counts %d bytes more for a large %s, want %d or more (a value is known: %t)", counted, field.Name, least, known)
		}
	}
	for name, n := range map[string]byok.New{"small": validCredential(), "largest": largest} {
		f := newFixture(t)
		const stored = 8 // Count rounds up their sum, not each of them
		for range stored {
			d, err := f.store.Seal(t.Context(), f.account, f.workspace, n)
			testkit.Must(t, err)
			testkit.Must(t, f.store.Create(t.Context(), d))
		}
		count, bytes, err := f.store.Count(t.Context(), f.workspace)
		if count != stored || err != nil || bytes > n.Size()*stored+4095 || bytes < (n.Size()-700)*stored {
			t.Errorf("%s: counted %d of %d bytes, %v; estimated %d each", name, count, bytes, err, n.Size())
		}
	}
}

func TestACountIsWhole(t *testing.T) {
	f := newFixture(t)
	count := func(wantRows, leastBytes, mostBytes int64) {
		t.Helper()
		if rows, bytes, err := f.store.Count(t.Context(), f.workspace); err != nil || rows != wantRows || bytes < leastBytes || bytes > mostBytes {
			t.Errorf("counted %d of %d bytes, %v; want %d of %d to %d", rows, bytes, err, wantRows, leastBytes, mostBytes)
		}
	}
	count(0, 0, 4096) // DynamoDB may charge nothing for an empty page
	f.fill(byok.MaxStored+1, 1)
	count(byok.MaxStored+1, 3*4096, 3*4096)
	f.fill(3, 350_000)
	if _, bytes, err := f.store.Count(t.Context(), f.workspace); err != nil || bytes <= byok.MaxBytes {
		t.Errorf("counted %d bytes, %v", bytes, err)
	}
	f.faults.Inject(faults.Rule{Operation: "Query", Fault: faults.EmptyAnswer()})
	if rows, _, err := f.store.Count(t.Context(), f.workspace); err == nil {
		t.Errorf("an empty response counts as %d", rows)
	}
}
