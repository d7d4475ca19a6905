package main

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
)

// Somebody with a leaked key has it in a mail, a log or a script, and pastes what is there.
func TestALeakedKeyIsFoundInEveryForm(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	key := d.must("key", "create", "leaked")
	hash, credential := string(auth.HashKey(key)), string(d.seal(d.workspace, "leaked"))
	wide := func(text string) string { return strings.Join(strings.Split(text, ""), "\x00") }
	for name, form := range map[string]func(string) string{
		"alone":                  func(key string) string { return key },
		"white space":            func(key string) string { return "\n  " + key + "\r\n" },
		"a byte order mark":      func(key string) string { return "\ufeff" + key },
		"a zero-width space":     func(key string) string { return "\u200b" + key + "\u200b" },
		"UTF-16":                 func(key string) string { return "\xff\xfe" + wide(key+"\r\n") + "\x00" },
		"UTF-16, big, no mark":   func(key string) string { return "\x00" + wide(key) },
		"a header":               func(key string) string { return "Authorization: Bearer " + key },
		"a request":              func(key string) string { return `curl -H "Authorization: Bearer ` + key + `" https://example.com` },
		"JSON":                   func(key string) string { return `{"data":[{"key":"` + key + `"}]}` },
		"JSON with an escape":    func(key string) string { return `{"key":"\u0073` + key[1:] + `"}` },
		"a variable":             func(key string) string { return "export OPENAI_API_KEY=" + key },
		"a line of YAML, quoted": func(key string) string { return "key: '" + key + "'," },
	} {
		for command, secret := range map[string][2]string{"key": {key, hash[:8]}, "credential": {providerKey, credential[:8]}} {
			if command == "key" && strings.Contains(form("sbx"), `\u`) {
				continue // no character of an API key is ever escaped
			}
			got := d.feed(form(secret[0]), command, "find", "-")
			if got.code != exit.Done || !strings.Contains(got.stdout, secret[1]) || strings.Contains(got.stdout+got.stderr, secret[0]) {
				t.Errorf("%s find, %s: exit code %d\n%s%s", command, name, got.code, got.stdout, got.stderr)
			}
		}
	}
	unknown := string(auth.NewToken().Reveal())
	for _, glued := range []string{key + "-1", unknown + key, key + unknown, "sbx_" + key, "\xfe" + wide(key)} {
		if got := d.feed(glued, "key", "find", "-"); got.code != exit.Done || !strings.Contains(got.stdout, hash[:8]) {
			t.Errorf("%q: exit code %d: %s%s", glued, got.code, got.stdout, got.stderr)
		}
	}
	for _, other := range []string{"sk-proj-0123456789", key[:46], key[:20] + "=\r\n" + key[20:], base64.StdEncoding.EncodeToString([]byte(key)), "sbx_", "\x00\x01"} {
		if got := d.feed(other, "key", "find", "-"); got.code != exit.Usage || !strings.Contains(got.stderr, "no API key that this command can read") {
			t.Errorf("%q: exit code %d: %s", other, got.code, got.stderr)
		}
	}
}

// A leaked provider key may be stored with something around it. Then it is shown, or said to
// be possible.
func TestALeakedKeyIsFoundAsItWasStored(t *testing.T) {
	t.Parallel()
	for form, shown := range map[string]bool{
		"%s": true, "%s,": true, "%s;": true, "OPENAI_API_KEY=%s": true, "<%s>": true, "'%s'": true, "%s\\": true, "`%s`": true,
		`"%s"`: false, "Bearer %s": false, " %s": false, "%s\n": false, "\ufeff%s": false, `{"key":"%s"}`: false, "key %s": false,
	} {
		d := newFixture(t)
		stored := []byte(fmt.Sprintf(form, providerKey))
		id := d.seal(d.workspace, "n", func(draft *byok.Draft) { draft.Label, draft.Form = byok.Label(stored), byok.FormOf(stored) })
		for _, leaked := range []string{providerKey, "x " + providerKey + "\n", string(stored)} {
			got := d.feed(leaked, "credential", "find", "-", "--account", string(d.account))
			if isShown := strings.Contains(got.stdout, string(id[:8])); isShown != shown || got.code != map[bool]int{true: exit.Done, false: exit.Uncertain}[shown] ||
				!shown && !strings.Contains(got.stderr, "1 credential may contain the key") {
				t.Errorf("stored as %q, leaked as %q: exit code %d: %s%s", stored, leaked, got.code, got.stdout, got.stderr)
			}
		}
	}
}

// A key with punctuation inside is found between other punctuation. A long text has few parts.
func TestPossibleKeys(t *testing.T) {
	t.Parallel()
	const stored = "AKIA/secret+abc/XYZW"
	for _, text := range []string{stored, "https://x/?key=" + stored + "&v=1", "a:" + stored + "#b/c", "KEY=" + stored + "."} {
		if !slices.Contains(possibleKeys(text), stored) {
			t.Errorf("%s: not found", text)
		}
	}
	random := make([]byte, 300_000)
	_, _ = rand.Read(random)
	for name, text := range map[string]string{"base64": base64.StdEncoding.EncodeToString(random), "slashes": strings.Repeat("/", 100_000)} {
		total := 0
		for _, part := range possibleKeys(text) {
			total += len(part)
		}
		if total > 400*len(text) {
			t.Errorf("%s: %d bytes in the parts of %d bytes", name, total, len(text))
		}
	}
}

// A name is found in another spelling.
func TestANameIsFoundInEverySpelling(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.must("key", "create", "Zo\u00eb\u00a0 Caf\u00e9")
	for _, typed := range []string{"Zoe\u0308 Cafe\u0301", "zo\u00eb  caf\u00e9", "ZO\u00cb\u00a0CAFE\u0301"} {
		if got := d.do("key", "find", typed); got.code != exit.Done {
			t.Errorf("%q: exit code %d: %s", typed, got.code, got.stderr)
		}
	}
}
