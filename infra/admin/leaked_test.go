package main

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
)

// Somebody with a leaked key has it in a mail, a log or a script, and pastes what is there.
func TestALeakedKeyIsFoundInEveryForm(t *testing.T) {
	t.Parallel()
	read := func(pasted string) (string, error) {
		s := &session{app: &app{stdin: strings.NewReader(pasted)}}
		return s.leakedText(t.Context())
	}
	key := string(auth.NewToken().Reveal())
	wide := func(text string) string { return strings.Join(strings.Split(text, ""), "\x00") }
	for _, secret := range []string{key, providerKey, "AKIA/secret+abc/XYZW"} {
		for name, pasted := range map[string]string{
			"alone":                  secret,
			"white space":            "\n  " + secret + "\r\n",
			"a byte order mark":      "\ufeff" + secret,
			"a zero-width space":     "\u200b" + secret + "\u200b",
			"UTF-16":                 "\xff\xfe" + wide(secret+"\r\n") + "\x00",
			"UTF-16, big, no mark":   "\x00" + wide(secret),
			"a header":               "Authorization: Bearer " + secret,
			"a request":              `curl -H "Authorization: Bearer ` + secret + `" https://example.com`,
			"JSON":                   `{"data":[{"key":"` + secret + `"}]}`,
			"a variable":             "export OPENAI_API_KEY=" + secret,
			"a line of YAML, quoted": "key: '" + secret + "',",
			"a URL":                  "https://x/?key=" + secret + "&v=1",
			"other punctuation":      "a:" + secret + "#b/c",
			"a sentence":             "KEY=" + secret + ".",
		} {
			text, err := read(pasted)
			if found := append(keyEnds(text), auth.TokensIn(text)...); err != nil || !slices.Contains(found, secret) && !slices.Contains(found, secret[len(secret)-keyEnd:]) {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
	}
	if escaped := providerKey[:len(providerKey)-1] + `\u0068`; !slices.Contains(keyEnds(`{"key":"`+escaped+`"}`), providerKey[len(providerKey)-keyEnd:]) {
		t.Error("JSON with an escape")
	}
	unknown := string(auth.NewToken().Reveal())
	for _, glued := range []string{key + "-1", unknown + key, key + unknown, "sbx_" + key, "\xfe" + wide(key)} {
		if text, err := read(glued); err != nil || !slices.Contains(auth.TokensIn(text), key) {
			t.Errorf("%q: %v", glued, err)
		}
	}
	for _, other := range []string{"sk-proj-0123456789", key[:46], key[:20] + "=\r\n" + key[20:], base64.StdEncoding.EncodeToString([]byte(key)), "sbx_"} {
		if found := auth.TokensIn(other); len(found) > 0 {
			t.Errorf("%q: %q", other, found)
		}
	}
}

// A leaked provider key may be stored with something around it. Then it is shown, or said to
// be possible.
func TestALeakedKeyIsFoundAsItWasStored(t *testing.T) {
	t.Parallel()
	for form, shown := range map[string]bool{
		"%s": true, "%s,": true, "%s;": true, "OPENAI_API_KEY=%s": true, "<%s>": true, "'%s'": true, "%s\\": true, "`%s`": true,
		"openai:%s": true, "key-%s": true, "https://example.com/?key=%s": true,
		`"%s"`: false, "Bearer %s": false, " %s": false, "%s\n": false, "\ufeff%s": false, `{"key":"%s"}`: false, "key %s": false,
	} {
		stored := []byte(fmt.Sprintf(form, providerKey))
		credential := byok.Credential{Label: byok.Label(stored), Form: byok.FormOf(stored)}
		for _, leaked := range []string{providerKey, "x " + providerKey + "\n", string(stored)} {
			if is := shows(credential, keyEnds(strings.TrimSpace(leaked))); is != shown || !shown && !mayHide(credential) {
				t.Errorf("stored as %q, leaked as %q: shown %t", stored, leaked, is)
			}
		}
	}
}
