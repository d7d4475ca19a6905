package contract_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// label is the contract's rule, written once more.
func label(key string) string {
	for _, c := range key {
		if c < '!' || c > '~' {
			return "..."
		}
	}
	if len(key) < 16 || strings.ContainsAny(key[:1], `{["`) {
		return "..."
	}
	return key[:3] + "..." + key[len(key)-4:]
}

// TestLabel: the published rule, at its edges.
func TestLabel(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for _, secret := range []string{
		"sk-0123456789abc", "sk-0123456789ab", "k", "0123456789abcdef0123456789", "{0123456789abcdef",
		"[0123456789abcdef", `"0123456789abcdef`, " 0123456789abcdef", "0123456789abcdef ", "0123456789 abcdef",
		"0123456789abcdé0", "sk-0123456789ab\n", "}}}}0123456789abcdef", "~~~0123456789!!!!", strings.Repeat("é", 20),
	} {
		text, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		if got := post(key(string(text))).as(n.management).do(t).created(t).Label; got != label(secret) {
			t.Errorf("key %q: got label %q, want %q", secret, got, label(secret))
		}
	}
}
