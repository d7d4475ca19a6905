package byok_test

import (
	"strings"
	"testing"

	"signalbox.dev/shared/byok"
)

func TestLabel(t *testing.T) {
	for key, want := range map[string]string{
		"sk-0123456789AbCd":          "sk-...AbCd",
		"0123456789abcdef":           "012...cdef", // 16 characters
		"0123456789abcde":            "...",        // 15
		"":                           "...",
		"k":                          "...",
		`{"type":"service_account"}`: "...",
		`["0123456789abcdef"]`:       "...",
		`"0123456789abcdef"`:         "...",
		"sk-0123456789 AbCd":         "...",
		"sk-0123456789AbCd\n":        "...",
		"sk-0123456789AbCé":          "...",
		"sk-\x7f0123456789AbCd":      "...",
		"!!!0123456789~~~~":          "!!!...~~~~",
	} {
		if got := byok.Label([]byte(key)); got != want {
			t.Errorf("Label(%q) = %q, want %q", key, got, want)
		}
	}
}

// The published rule, for any key: at most 7 of its characters, and fewer than half.
func FuzzLabel(f *testing.F) {
	for _, seed := range []string{"sk-0123456789AbCd", "short", `{"a":1}`, "0123456789abcdef", "é"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		label := byok.Label(key)
		head, tail, ok := strings.Cut(label, "...")
		if !ok || len(head)+len(tail) > 7 || 2*(len(head)+len(tail)) >= max(len(key), 1) {
			t.Fatalf("Label(%q) = %q", key, label)
		}
		if !strings.HasPrefix(string(key), head) || !strings.HasSuffix(string(key), tail) {
			t.Fatalf("Label(%q) = %q, which is not of the key", key, label)
		}
	})
}
