package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
)

// A request is recorded under its idempotency key if and only if there is exactly
// one, of 1 to 255 visible ASCII characters. Any other is refused.
func FuzzIdempotencyKey(f *testing.F) {
	for _, key := range []string{"k", "!~", strings.Repeat("k", 255), strings.Repeat("k", 256), "", "a b", " a", "\u00e9", "\x7f", "a\n", "a,b"} {
		f.Add(uint8(1), key, "")
		f.Add(uint8(2), key, "other")
	}
	f.Add(uint8(0), "", "")
	hash := string(auth.HashKey(onlyKey))
	f.Fuzz(func(t *testing.T, count uint8, first, second string) {
		m := newMemory()
		given := []string{first, second}[:count%3]
		got := m.send(t, bodies()[0], given...)
		if len(given) == 0 {
			if got.Status != http.StatusCreated || len(m.recalled)+len(m.control) > 0 {
				t.Fatalf("without a key: status %d, %v recalled", got.Status, m.recalled)
			}
			return
		}
		if len(given) > 1 || !regexp.MustCompile(`^[!-~]{1,255}$`).MatchString(first) {
			checkRefusal(t, got, m, []byte(strings.Join(given, "\n")))
			if len(m.recalled) > 0 {
				t.Fatalf("%q: %v recalled", given, m.recalled)
			}
			return
		}
		sum := sha256.Sum256([]byte(first))
		want := byok.RequestID("idem#" + hash + "#" + hex.EncodeToString(sum[:]))
		if got.Status != http.StatusCreated || !slices.Equal(m.recalled, []byok.RequestID{want}) || m.control[string(want)] == nil {
			t.Fatalf("%q: status %d, %v recalled, want %v", first, got.Status, m.recalled, want)
		}
		other := byok.NewRequestID(hash, second)
		if (other == want) != (first == second) || byok.NewRequestID(hash[1:]+"0", first) == want {
			t.Fatalf("%q and %q are one request", first, second)
		}
	})
}

// Under one idempotency key, two bodies are one request if and only if they have
// the same members with the same values, however they are written.
func FuzzReplay(f *testing.F) {
	for _, a := range bodies()[:4] {
		for _, b := range bodies()[:4] {
			f.Add(a, b)
		}
	}
	f.Add(bodies()[0], []byte(`{"provider":"openai" , "\u006bey":"\u0073k-0123456789abcdef"}`))
	f.Add(bodies()[0], []byte(`{"provider":"openai","key":"sk-0123456789abcdef","disabled":false}`))
	o := newOracle(f)
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if _, ok := o.read(a); !ok {
			return
		}
		m := newMemory()
		first := m.send(t, a, "k")
		others := rewrite(t, a)
		rewritten := m.send(t, others, "k")
		if len(others) <= 65536 && (rewritten.Body != first.Body || rewritten.Header["Idempotent-Replayed"] != "true") {
			t.Fatalf("%q rewritten: %+v", a, rewritten)
		}
		if _, ok := o.read(b); !ok {
			return
		}
		of := func(body []byte) map[string]any { object, _ := objectOf(body); return object }
		same := reflect.DeepEqual(of(a), of(b))
		got := m.send(t, b, "k")
		if same != (got.Body == first.Body) || same != (got.Status == http.StatusCreated) || m.written != 1 {
			t.Fatalf("%q after %q: %+v", b, a, got)
		}
	})
}

// rewrite writes an object differently: its members sorted backwards, every
// character of its strings escaped, white space wherever it is allowed.
func rewrite(t *testing.T, body []byte) []byte {
	t.Helper()
	object, _ := objectOf(body)
	escaped := func(text string) string {
		var s strings.Builder
		for _, unit := range utf16.Encode([]rune(text)) {
			fmt.Fprintf(&s, `\u%04X`, unit)
		}
		return ` "` + s.String() + "\"\r\n"
	}
	var written []string
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(object))) {
		value := fmt.Sprintf(" %v\t", object[name])
		switch v := object[name].(type) {
		case nil:
			value = " null "
		case string:
			value = escaped(v)
		case []any:
			var texts []string
			for _, element := range v {
				texts = append(texts, escaped(element.(string)))
			}
			value = " [" + strings.Join(texts, ",") + "]"
		}
		written = append(written, escaped(name)+":"+value)
	}
	return []byte(" {" + strings.Join(written, ",") + "} ")
}
