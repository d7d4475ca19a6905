package byok_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/secret"
)

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

// A router refuses a workspace that holds more than its bound, and the operator can
// still list and delete its credentials.
func TestTheBoundOfAWorkspace(t *testing.T) {
	// An engine may end a page behind the row that passes 1 MB: one more row follows.
	for name, c := range map[string]struct{ within, more, bytes int }{
		"too many": {byok.MaxStored - 1, 1, 1}, "too large": {2, 2, 350_000},
	} {
		f := newFixture(t)
		last := f.newCredential()
		f.fill(c.within, c.bytes)
		if _, err := f.read(); errors.Is(err, byok.ErrTooMany) {
			t.Errorf("%s: refused within the bound", name)
		}
		f.fill(c.more, c.bytes)
		for range 2 {
			_, settings := f.manager.ReadSettings(t.Context(), f.account, f.workspace)
			if _, err := f.read(); !errors.Is(err, byok.ErrTooMany) || !errors.Is(settings, byok.ErrTooMany) {
				t.Errorf("%s: read: %v, without keys %v", name, err, settings)
			}
		}
		all, err := f.manager.List(t.Context(), f.workspace)
		if err != nil || !slices.ContainsFunc(all, func(c byok.Credential) bool { return c.ID == last.ID }) {
			t.Errorf("%s: listed %d, %v", name, len(all), err)
		}
	}
}

func (f *fixture) read() ([]byok.Stored, error) {
	return byok.ReadAll(f.Context(), f.db, f.env.Tables.Credentials, f.account, f.workspace)
}

// No estimate is below DynamoDB's own count of bytes, and none is far above.
func TestSizesAreCounted(t *testing.T) {
	largest := validCredential()
	largest.Key = secret.New([]byte(strings.Repeat("k", 32768)))
	texts := reflect.ValueOf(&largest.Settings).Elem()
	for i := range texts.NumField() {
		switch field := texts.Field(i); field.Interface().(type) {
		case string:
			field.SetString(strings.Repeat("é", 1000))
		case []string:
			field.Set(reflect.ValueOf(slices.Repeat([]string{strings.Repeat("é", 255)}, 20)))
		case bool:
		default:
			t.Fatalf("Size does not count the setting %s", texts.Type().Field(i).Name)
		}
	}
	for name, n := range map[string]byok.New{"small": validCredential(), "largest": largest} {
		f := newFixture(t)
		const stored = 8 // Count rounds their sum up, not each
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
	count(0, 0, 4096) // DynamoDB Local charges nothing for an empty page
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
