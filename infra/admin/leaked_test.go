package main

import (
	"strings"
	"testing"
	"unicode/utf16"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/shared/auth"
)

// Somebody with a leaked key has it in a mail, a log or a script, and pastes what is there.
func TestALeakedKeyIsFoundInEveryForm(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	key := d.must("key", "create", "leaked")
	hash, credential := string(auth.HashKey(key)), string(d.seal(d.workspace, "leaked"))
	utf16Of := func(first, second int) func(string) string {
		return func(text string) string {
			var encoded []byte
			for _, unit := range utf16.Encode([]rune(text)) {
				encoded = append(encoded, byte(unit>>first), byte(unit>>second)) //nolint:gosec // one byte of the two
			}
			return string(encoded)
		}
	}
	bigEndian, littleEndian := utf16Of(8, 0), utf16Of(0, 8)
	for name, form := range map[string]func(string) string{
		"alone":                  func(key string) string { return key },
		"white space":            func(key string) string { return "\n  " + key + "\r\n" },
		"a byte order mark":      func(key string) string { return "\ufeff" + key },
		"a zero-width space":     func(key string) string { return "\u200b" + key + "\u200b" },
		"UTF-16 with its mark":   func(key string) string { return littleEndian("\ufeff" + key + "\r\n") },
		"UTF-16, big":            func(key string) string { return bigEndian("\ufeff" + key) },
		"UTF-16 without a mark":  func(key string) string { return littleEndian(key) },
		"UTF-16, big, no mark":   func(key string) string { return bigEndian(key) },
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
	for _, other := range []string{"sk-proj-0123456789", key[:46], key + "x", "sbx_", string([]byte{0, 1, 2, 3})} {
		if got := d.feed(other, "key", "find", "-"); got.code != exit.Usage || !strings.Contains(got.stderr, "has no API key: a key is sbx_ and 43") {
			t.Errorf("%q: exit code %d: %s", other, got.code, got.stderr)
		}
	}
	if got := d.feed("{\n"+key+"\n"+string(auth.NewToken().Reveal())+"\n}", "key", "find", "-"); got.code != exit.Done || !strings.Contains(got.stdout, hash[:8]) {
		t.Errorf("two keys, one of them unknown: exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
}
