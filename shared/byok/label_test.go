package byok_test

import (
	"regexp"
	"strings"
	"testing"

	"signalbox.dev/shared/byok"
)

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
