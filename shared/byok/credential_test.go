package byok_test

import (
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/issues"
	"signalbox.dev/shared/secret"
)

// The bounds of each member; FuzzDecode of create-byok-key checks the rest.
func TestIssues(t *testing.T) {
	hash := ids.KeyHash(strings.Repeat("0a", 32))
	cases := map[string]struct {
		change func(*byok.New)
		want   []string // path and reason
	}{
		"no change":              {func(*byok.New) {}, nil},
		"longest key":            {func(n *byok.New) { n.Key = secret.New([]byte(strings.Repeat("é", 16384))) }, nil},
		"key too long":           {func(n *byok.New) { n.Key = secret.New([]byte(strings.Repeat("é", 16384) + "k")) }, []string{"/key too_large"}},
		"last provider":          {func(n *byok.New) { n.Provider = "z-ai" }, nil},
		"part of a provider":     {func(n *byok.New) { n.Provider = "open" }, []string{"/provider invalid"}},
		"end of a provider":      {func(n *byok.New) { n.Provider = "enai" }, []string{"/provider invalid"}},
		"two adjacent providers": {func(n *byok.New) { n.Provider = "ai21\naion-labs" }, []string{"/provider invalid"}},
		"longest name":           {func(n *byok.New) { n.Name = strings.Repeat("😀", 255) }, nil},
		"name too long":          {func(n *byok.New) { n.Name = strings.Repeat("x", 256) }, []string{"/name too_large"}},
		"hundred hashes":         {func(n *byok.New) { n.AllowedAPIKeyHashes = slices.Repeat([]ids.KeyHash{hash}, 100) }, nil},
		"too many hashes":        {func(n *byok.New) { n.AllowedAPIKeyHashes = slices.Repeat([]ids.KeyHash{hash}, 101) }, []string{"/allowed_api_key_hashes too_large"}},
		"upper-case hash": {func(n *byok.New) {
			n.AllowedAPIKeyHashes = []ids.KeyHash{hash, ids.KeyHash(strings.ToUpper(string(hash)))}
		}, []string{"/allowed_api_key_hashes/1 invalid"}},
		"short hash":              {func(n *byok.New) { n.AllowedAPIKeyHashes = []ids.KeyHash{hash[1:]} }, []string{"/allowed_api_key_hashes/0 invalid"}},
		"hundred models":          {func(n *byok.New) { n.AllowedModels = slices.Repeat([]string{"m"}, 100) }, nil},
		"too many models":         {func(n *byok.New) { n.AllowedModels = slices.Repeat([]string{"m"}, 101) }, []string{"/allowed_models too_large"}},
		"empty model":             {func(n *byok.New) { n.AllowedModels = []string{"m", ""} }, []string{"/allowed_models/1 invalid"}},
		"longest model":           {func(n *byok.New) { n.AllowedModels = []string{strings.Repeat("é", 255)} }, nil},
		"model too long":          {func(n *byok.New) { n.AllowedModels = []string{strings.Repeat("é", 256)} }, []string{"/allowed_models/0 too_large"}},
		"too many users":          {func(n *byok.New) { n.AllowedUserIDs = slices.Repeat([]string{"u"}, 101) }, []string{"/allowed_user_ids too_large"}},
		"byok only and required":  {func(n *byok.New) { n.BYOKOnly, n.Required = true, true }, nil},
		"byok only as a fallback": {func(n *byok.New) { n.BYOKOnly, n.Fallback = true, true }, []string{"/is_byok_only invalid"}},
		"everything": {func(n *byok.New) {
			*n = byok.New{Settings: byok.Settings{Provider: "x", Name: strings.Repeat("x", 256), AllowedAPIKeyHashes: []ids.KeyHash{},
				AllowedModels: []string{""}, AllowedUserIDs: []string{""}, BYOKOnly: true, Fallback: true}}
		}, []string{"/key invalid", "/provider invalid", "/name too_large", "/allowed_api_key_hashes invalid", "/allowed_models/0 invalid", "/allowed_user_ids/0 invalid", "/is_byok_only invalid"}},
	}
	for name, c := range cases {
		n := validCredential()
		c.change(&n)
		var got []string
		for _, issue := range n.Issues() {
			got = append(got, issue.Path+" "+string(issue.Reason))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: issues (-want +got):\n%s", name, diff)
		}
	}
}

// A body may hold 20,000 wrong elements, of which a hundred are shown: no others take time.
func TestTheCostOfIssuesIsBounded(t *testing.T) {
	n := validCredential()
	n.AllowedAPIKeyHashes = make([]ids.KeyHash, 20_000)
	if made := testing.AllocsPerRun(1, func() { n.Issues() }); made > 500 {
		t.Errorf("%v allocations", made)
	}
}

// A management key that somebody pastes as a provider's would be sent to the provider. What is
// refused is what the published pattern matches, and nothing else.
func TestAnAPIKeyIsNoProviderKey(t *testing.T) {
	page, err := os.ReadFile("../../.github/SECURITY.md")
	kit.Must(t, err)
	published := regexp.MustCompile(regexp.MustCompile(`(?m)^\\bsbx_.*$`).FindString(string(page)))
	const apiKey = "sbx_0123456789-abcdefghijklmnopqrstuvwxyz_ABCDE"
	texts := []string{apiKey, "Bearer " + apiKey, `{"key":"` + apiKey + `"}`, apiKey + "\n", apiKey + "-", "é" + apiKey + "é", "xsbx_-" + apiKey}
	for _, other := range []string{"x" + apiKey, "_" + apiKey, apiKey + "A", apiKey + "_", apiKey[:46], apiKey[:46] + "F", apiKey[:20] + "." + apiKey[21:], "sbx_", "sb" + apiKey[3:]} {
		if published.MatchString(other) {
			t.Fatalf("the pattern matches %q", other)
		}
		texts = append(texts, other)
	}
	pieces := []string{"sbx_", "-", "_", "A", "x", " ", "é", apiKey[4:], apiKey[4:46], apiKey[5:]}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret: each run tries the same texts
	for range 20_000 {
		var text strings.Builder
		for range 1 + random.IntN(8) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		texts = append(texts, text.String())
	}
	for _, text := range texts {
		n := validCredential()
		n.Key = secret.New([]byte(text))
		found, form := n.Issues(), byok.FormOf([]byte(text))
		refused := len(found) == 1 && found[0].Path == "/key" && found[0].Reason == issues.Invalid && strings.Contains(found[0].Message, "this is an API key of this service")
		if want := published.MatchString(text); refused != want || (form == byok.SignalboxKey) != want || want && form.FitsHeader() {
			t.Fatalf("%q: refused %t, form %s; the pattern matches: %t", text, refused, form, want)
		}
	}
}

func TestAnUnknownProviderGetsASuggestion(t *testing.T) {
	for slug, want := range map[string]string{
		"OpenAI": "openai", "opnai": "openai", "azure-openai": "openai", "vertex": "google-vertex", "Z.AI": "z-ai",
		"sk-0123456789": "", "": "",
	} {
		n := validCredential()
		n.Provider = slug
		message := "must be a slug that the OpenAPI document lists under Provider"
		if want != "" {
			message += "; did you mean " + want + "?"
		}
		if diff := cmp.Diff([]issues.Issue{{Path: "/provider", Reason: issues.Invalid, Message: message}}, n.Issues()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", slug, diff)
		}
	}
}

// A label follows infra/openapi.yaml: the first 3 and last 4 characters of some keys,
// and "..." for others. It shows at most 7 characters and always less than half.
func FuzzLabel(f *testing.F) {
	for _, seed := range []string{
		"sk-0123456789AbCd", "0123456789abcdef", "0123456789abcde", "", "k", "!!!0123456789~~~~",
		`{"type":"service_account"}`, `["0123456789abcdef"]`, `"0123456789abcdef"`, "[123456789abcdef", "]123456789abcdef",
		"sk-0123456789 AbCd", "sk-0123456789AbCd\n", "sk-0123456789AbCé", "é0123456789abcdef", "sk-\x7f0123456789AbCd", "0123456789abc\x7fef",
	} {
		f.Add([]byte(seed))
	}
	visible := regexp.MustCompile(`^[!-~]{16,}$`)
	f.Fuzz(func(t *testing.T, key []byte) {
		want := "..."
		if visible.Match(key) && !strings.ContainsRune(`{["`, rune(key[0])) {
			want = string(key[:3]) + "..." + string(key[len(key)-4:])
		}
		label := byok.Label(key)
		if label != want {
			t.Fatalf("Label(%q) = %q, want %q", key, label, want)
		}
		if shown := len(label) - len("..."); shown > 7 || 2*shown >= max(len(key), 1) {
			t.Fatalf("Label(%q) = %q shows too much", key, label)
		}
	})
}
