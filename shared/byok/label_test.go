package byok_test

import (
	"regexp"
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

// The published rule, for any key: what is shown of which keys, and that it is at
// most 7 of their characters and fewer than half.
func FuzzLabel(f *testing.F) {
	for _, seed := range []string{"sk-0123456789AbCd", "short", `{"a":1}`, "0123456789abcdef", "0123456789abcde", "[123456789abcdef", "0123456789abc\x7fef", "\u00e90123456789abcdef"} {
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
		if given := len(label) - len("..."); given > 7 || 2*given >= max(len(key), 1) {
			t.Fatalf("Label(%q) = %q gives too much away", key, label)
		}
	})
}
