package byok_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/secret"
)

func TestListReadsAllButTheSeal(t *testing.T) {
	f := newFixture(t)
	d := f.newDraft()
	d.Settings, d.Form = kit.FilledSettings(t), byok.NoHeader // a lost setting would allow more than was meant
	kit.Must(t, f.store.Create(t.Context(), d))
	want := []byok.Credential{d.Credential}
	f.faults.Heal()
	got, err := f.manager.List(t.Context(), f.workspace)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, credentials (-want +got):\n%s", err, diff)
	}
	survey, err := byok.Survey(t.Context(), dynamodb.NewFromConfig(f.faulty), f.env.Tables.Credentials)
	if err != nil || !slices.ContainsFunc(survey, func(s byok.Surveyed) bool { return cmp.Equal(s, byok.Surveyed{Credential: d.Credential}) }) {
		t.Errorf("the survey lacks %+v, %v", d.Credential, err)
	}
	everywhere, err := f.manager.ListAll(t.Context())
	if err != nil || !slices.ContainsFunc(everywhere.Credentials, func(c byok.Credential) bool { return cmp.Equal(c, d.Credential) }) {
		t.Errorf("the list of all workspaces lacks %+v, %v", d.Credential, err)
	}
	for _, c := range f.faults.Calls() {
		if input := fmt.Sprint(c.Input); strings.Contains(input, "seal") || c.Input["ConsistentRead"] != true {
			t.Errorf("the seal is read, or inconsistently: %s", input)
		}
	}
}

// A key is stored as sent. If something may have been pasted around it, lists say so.
func TestAnUnusualKeyIsMarked(t *testing.T) {
	f := newFixture(t)
	for key, form := range map[string]byok.Form{
		"sk-0123456789AbCd": byok.Header, "!": byok.Header, "id:secret/+._~-": byok.Header, "c2VjcmV0==": byok.Header, "c2VjcmV0=": byok.Header, "a==b": byok.Header, "9=b": byok.Header, "a.b=c": byok.Header, "=c": byok.Header,
		"two words ~": byok.Odd, `"sk-1"`: byok.Odd, "'sk-1'": byok.Odd, "`sk-1`": byok.Odd, "sk-1,": byok.Odd, "sk-1;": byok.Odd, "<sk-1>": byok.Odd, `sk-1\n`: byok.Odd,
		"Bearer sk-1": byok.Odd, "OPENAI_API_KEY=sk-1": byok.Odd, "_k2=s": byok.Odd,
		"sk-0123456789AbCd\n": byok.NoHeader, "k\r\n": byok.NoHeader, "k ": byok.NoHeader, "k\u00a0": byok.NoHeader, "": byok.NoHeader,
		" sk-0123456789AbCd": byok.NoHeader, "\nk": byok.NoHeader, "\tk": byok.NoHeader, "\ufeffk": byok.NoHeader, "\u200bk": byok.NoHeader, "k\x7f": byok.NoHeader, "é": byok.NoHeader,
		`{"type":"service_account"}`: byok.Document, "[1]": byok.Document, "\r\n {\n}\n": byok.Document, "\ufeff{}": byok.NoHeader,
	} {
		d, err := f.store.Seal(t.Context(), f.account, f.workspace, byok.New{Settings: byok.Settings{Provider: "openai"}, Key: secret.New([]byte(key))})
		if err != nil || d.Form != form {
			t.Errorf("%q: %q, %v, want %q", key, d.Form, err, form)
		}
	}
}

func TestPurgeRemovesEveryCredentialOfOneWorkspace(t *testing.T) {
	f, other := newFixture(t), newFixture(t)
	other.newCredential()
	const total = 51 // more than two batches
	for range total {
		f.newCredential()
	}
	if removed, err := f.manager.Purge(t.Context(), f.workspace); err != nil || removed != total {
		t.Errorf("purged %d, %v; want %d", removed, err, total)
	}
	if left, kept := f.stored(), other.stored(); len(left) != 0 || len(kept) != 1 {
		t.Errorf("%d credentials left, %d of the other workspace; want 0 and 1", len(left), len(kept))
	}
}

// An allow-list of API keys is replaced only as it was read: otherwise a removed key could return.
func TestAnAllowListIsReplacedAsItWasRead(t *testing.T) {
	f := newFixture(t)
	d := f.newDraft()
	d.AllowedAPIKeyHashes = []ids.KeyHash{"a"}
	kit.Must(t, f.store.Create(t.Context(), d))
	for _, c := range []struct {
		hash ids.KeyHash
		want error
	}{{"b", nil}, {"b", nil}, {"c", byok.ErrChanged}} { // the second time changes nothing
		if err := f.manager.SetAllowedKeys(t.Context(), d.Credential, []ids.KeyHash{c.hash}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.hash, err, c.want)
		}
	}
}
