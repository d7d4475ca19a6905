package byok_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/secret"
)

// valid is a credential with nothing wrong, after the changes.
func valid(changes ...func(*byok.New)) byok.New {
	n := byok.New{Key: secret.New([]byte("k")), Settings: byok.Settings{Provider: "openai", Name: "n"}}
	for _, change := range changes {
		change(&n)
	}
	return n
}

func key(k string) func(*byok.New) { return func(n *byok.New) { n.Key = secret.New([]byte(k)) } }

func provider(p string) func(*byok.New) { return func(n *byok.New) { n.Provider = p } }

func name(s string) func(*byok.New) { return func(n *byok.New) { n.Name = s } }

func hashes(h ...string) func(*byok.New) {
	return func(n *byok.New) { n.AllowedAPIKeyHashes = append([]string{}, h...) }
}

func models(m ...string) func(*byok.New) {
	return func(n *byok.New) { n.AllowedModels = append([]string{}, m...) }
}

func users(u ...string) func(*byok.New) {
	return func(n *byok.New) { n.AllowedUserIDs = append([]string{}, u...) }
}

func flags(only, fallback, required bool) func(*byok.New) {
	return func(n *byok.New) { n.BYOKOnly, n.Fallback, n.Required = only, fallback, required }
}

func TestProblems(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	many := func(s string, n int) []string { return strings.Fields(strings.Repeat(s+" ", n)) }
	cases := map[string]struct {
		n    byok.New
		want []string // paths
	}{
		"plain":                   {valid(), nil},
		"longest key":             {valid(key(strings.Repeat("k", 32768))), nil},
		"key too long":            {valid(key(strings.Repeat("k", 32769))), []string{"/key"}},
		"no key":                  {valid(key("")), []string{"/key"}},
		"key of NUL":              {valid(key("\x00")), nil},
		"provider with slash":     {valid(provider("anthropic/2")), nil},
		"first provider":          {valid(provider("ai21")), nil},
		"last provider":           {valid(provider("z-ai")), nil},
		"no provider":             {valid(provider("")), []string{"/provider"}},
		"upper-case provider":     {valid(provider("OpenAI")), []string{"/provider"}},
		"part of a provider":      {valid(provider("open")), []string{"/provider"}},
		"end of a provider":       {valid(provider("enai")), []string{"/provider"}},
		"two adjacent providers":  {valid(provider("ai21\naion-labs")), []string{"/provider"}},
		"provider with newline":   {valid(provider("openai\n")), []string{"/provider"}},
		"empty name":              {valid(name("")), nil},
		"longest name":            {valid(name(strings.Repeat("😀", 255))), nil},
		"name too long":           {valid(name(strings.Repeat("x", 256))), []string{"/name"}},
		"one hash":                {valid(hashes(hash)), nil},
		"hundred hashes":          {valid(hashes(many(hash, 100)...)), nil},
		"too many hashes":         {valid(hashes(many(hash, 101)...)), []string{"/allowed_api_key_hashes"}},
		"no hashes":               {valid(hashes()), []string{"/allowed_api_key_hashes"}},
		"upper-case hash":         {valid(hashes(hash, strings.ToUpper(hash))), []string{"/allowed_api_key_hashes/1"}},
		"short hash":              {valid(hashes(hash[1:])), []string{"/allowed_api_key_hashes/0"}},
		"no models":               {valid(models()), nil},
		"hundred models":          {valid(models(many("m", 100)...)), nil},
		"too many models":         {valid(models(many("m", 101)...)), []string{"/allowed_models"}},
		"empty model":             {valid(models("m", "")), []string{"/allowed_models/1"}},
		"longest model":           {valid(models(strings.Repeat("é", 255))), nil},
		"model too long":          {valid(models(strings.Repeat("é", 256))), []string{"/allowed_models/0"}},
		"no users":                {valid(users()), nil},
		"empty user":              {valid(users("")), []string{"/allowed_user_ids/0"}},
		"too many users":          {valid(users(many("u", 101)...)), []string{"/allowed_user_ids"}},
		"byok only":               {valid(flags(true, false, false)), nil},
		"byok only and required":  {valid(flags(true, false, true)), nil},
		"fallback and required":   {valid(flags(false, true, true)), nil},
		"byok only as a fallback": {valid(flags(true, true, false)), []string{"/is_byok_only"}},
		"all at once is all told": {valid(key(""), provider("x"), name(strings.Repeat("x", 256)), hashes(), models(""), users(""), flags(true, true, true)),
			[]string{"/key", "/provider", "/name", "/allowed_api_key_hashes", "/allowed_models/0", "/allowed_user_ids/0", "/is_byok_only"}},
	}
	for name, c := range cases {
		var got []string
		for _, p := range c.n.Problems() {
			got = append(got, p.Path)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: paths (-want +got):\n%s", name, diff)
		}
	}
}
