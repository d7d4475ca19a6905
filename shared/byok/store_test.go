package byok_test

import (
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/secret"
)

// DynamoDB may keep an answer for days after it expired.
func TestAnAnswerExpiresAfter25Hours(t *testing.T) {
	f := newFixture(t)
	id := newRequest()
	_ = f.createOnce(id, "response 1")
	expires := time.Unix(f.clock.Add(25*time.Hour).Unix(), 0)
	*f.clock = expires.Add(-time.Second)
	if got := f.createOnce(id, "response 2"); got != "response 1" {
		t.Errorf("before: %q", got)
	}
	*f.clock = expires
	if recalled, created := f.replay(f.store.FindAnswer(t.Context(), id)), f.createOnce(id, "response 3"); recalled != "" || created != "" {
		t.Errorf("expired: recalled %q, created %q", recalled, created)
	}
}

// A response of success that is not the write's own must not become a 201.
func TestAnotherCallsResponseIsNoProof(t *testing.T) {
	f := newFixture(t)
	f.faults.Inject(faults.Rule{Operation: "PutItem", Fault: faults.Pretend(http.StatusOK, `{"Item":{}}`)})
	f.faults.Inject(faults.Rule{Operation: "TransactWriteItems", Fault: faults.Pretend(http.StatusOK, `{"Item":{}}`)})
	_, onceErr := f.store.CreateOnce(t.Context(), f.newDraft(), newRequest(), fingerprint, []byte("{}"))
	if err := f.store.Create(t.Context(), f.newDraft()); err == nil || onceErr == nil || len(f.stored()) > 0 {
		t.Errorf("%v, %v; %d credentials are stored", err, onceErr, len(f.stored()))
	}
}

// A damaged answer may belong to this same request: it is neither replayed nor
// overwritten, and storing is not tried again.
func TestADamagedAnswerIsNeitherReplayedNorOverwritten(t *testing.T) {
	f := newFixture(t)
	for _, attribute := range []string{"v", "fingerprint"} {
		id := newRequest()
		_ = f.createOnce(id, "response")
		kit.Rows{DB: f.db, Table: f.env.Tables.Control}.Set(t, kit.Key(string(id)), attribute, kit.Number("1"))
		stored := len(f.stored())
		if found, err := f.store.FindAnswer(t.Context(), id); err == nil {
			t.Errorf("%s: recalled %+v", attribute, found)
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

// Size is never less than DynamoDB counts, and at most 700 bytes more. So a workspace with
// room for so many by Size has room for them as stored.
func TestSizesAreCounted(t *testing.T) {
	filled, texts := kit.FilledSettings(t), 0 // each text is the name of its field
	for field, value := range reflect.ValueOf(filled).Fields() {
		if value.Kind() != reflect.Bool {
			texts += len(field.Name)
		}
	}
	if grown := int(byok.New{Settings: filled}.Size() - byok.New{}.Size()); grown < texts {
		t.Errorf("Size counts %d bytes for texts of %d", grown, texts)
	}
	largest := byok.New{Key: secret.New(make([]byte, 32768)), Settings: byok.Settings{
		Provider: "openai", Name: strings.Repeat("é", 255), AllowedModels: slices.Repeat([]string{strings.Repeat("é", 50)}, 100),
		AllowedUserIDs: slices.Repeat([]string{"u"}, 100), AllowedAPIKeyHashes: slices.Repeat([]ids.KeyHash{"0a"}, 100),
	}}
	for _, n := range []byok.New{validCredential(), largest} {
		f := newFixture(t)
		const stored = 8 // DynamoDB rounds up their sum, not each of them
		for range stored {
			d, err := f.store.Seal(t.Context(), f.account, f.workspace, n)
			kit.Must(t, err)
			kit.Must(t, f.store.Create(t.Context(), d))
		}
		f.checkRoom(100, byok.MaxBytes-stored*n.Size()-4095, nil)
		f.checkRoom(100, byok.MaxBytes-stored*(n.Size()-700), byok.ErrFull)
	}
}

func (f *fixture) checkRoom(bound, size int64, want error) {
	f.Helper()
	if got := f.store.CheckRoom(f.Context(), f.workspace, byok.Bound{Credentials: bound, Bytes: byok.MaxBytes}, size); !errors.Is(got, want) {
		f.Errorf("room for %d bytes, if it may hold %d: %v; want %v", size, bound, got, want)
	}
}

// fill stores rows of so many bytes each.
func (f *fixture) fill(rows, bytes int) {
	f.Helper()
	table := kit.Rows{DB: f.db, Table: f.env.Tables.Credentials}
	for range rows {
		row := kit.Key("workspace#"+string(f.workspace), "credential#"+string(ids.New[ids.Credential]()))
		row["text"] = kit.Text(strings.Repeat("x", bytes))
		table.Put(f, row)
	}
}

// A router reads one page, however few credentials fill it, so a workspace has no room beyond.
// The operator can still list them.
func TestAWorkspaceIsOnePage(t *testing.T) {
	f := newFixture(t)
	readers := map[string]func() error{
		"ReadAll": func() error {
			_, err := byok.ReadAll(t.Context(), f.db, f.env.Tables.Credentials, f.account, f.workspace)
			return err
		},
		"ReadSettings": func() error {
			_, err := f.manager.ReadSettings(t.Context(), f.account, f.workspace)
			return err
		},
		"CheckSize": func() error { return f.manager.CheckSize(t.Context(), f.workspace) },
	}
	f.checkRoom(1, byok.MaxBytes-4096, nil) // DynamoDB may charge nothing for an empty page
	f.checkRoom(1, byok.MaxBytes+1, byok.ErrFull)
	f.fill(99, 1)
	f.checkRoom(100, 1, nil)
	f.checkRoom(99, 1, byok.ErrFull)
	for name, read := range readers {
		if err := read(); errors.Is(err, byok.ErrTooMany) {
			t.Errorf("%s of many small ones: %v", name, err)
		}
	}
	f.fill(4, 350_000) // more than a page, wherever it ends
	f.checkRoom(1000, 0, byok.ErrFull)
	for name, read := range readers {
		if err := read(); !errors.Is(err, byok.ErrTooMany) {
			t.Errorf("%s of more than a page: %v", name, err)
		}
	}
	if all, err := f.manager.List(t.Context(), f.workspace); err != nil || len(all) != 103 {
		t.Errorf("listed %d, %v", len(all), err)
	}
	// moto names one unit for any page.
	f.faults.Inject(faults.Rule{Operation: "Query", Fault: faults.Otherwise(http.StatusOK,
		`{"Count":1,"ScannedCount":1,"ConsumedCapacity":{"CapacityUnits":1},"LastEvaluatedKey":{"pk":{"S":"a"},"sk":{"S":"b"}}}`)})
	f.checkRoom(100, 1, byok.ErrFull)
}
