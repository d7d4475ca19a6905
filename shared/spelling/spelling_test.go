package spelling_test

import (
	"strings"
	"testing"

	"signalbox.dev/shared/spelling"
)

func TestNearest(t *testing.T) {
	ours := []string{
		"key", "provider", "name", "workspace_id", "allowed_api_key_hashes", "allowed_models",
		"allowed_user_ids", "is_byok_only", "is_fallback", "z-ai",
	}
	for name, want := range map[string]string{
		strings.Repeat("x", 248) + "api_key": "key",
		strings.Repeat("x", 249) + "api_key": "",

		"ky":                "key",
		"kx":                "",
		"nmea":              "name",
		"x":                 "",
		"":                  "",
		"KEY":               "key",
		"apiKey":            "key",
		"api_key":           "key",
		"ключ-key":          "key",
		"keys.of.mine":      "",
		"workspaceId":       "workspace_id",
		"model":             "allowed_models",
		"odel":              "allowed_models",
		"ode":               "",
		"api_key_hashes":    "allowed_api_key_hashes",
		"userIds":           "allowed_user_ids",
		"allowed":           "allowed_api_key_hashes", // the first of several
		"allowed_modelsxyz": "allowed_models",
		"allowedmodelsxyzz": "",
		"fallback":          "is_fallback",
		"displayName":       "name",
		"provider_name":     "name",
		"Z.AI":              "z-ai",
	} {
		if got := spelling.Nearest(name, ours); got != want {
			t.Errorf("%q is taken for %q, want %q", name, got, want)
		}
	}
	// The smallest distance wins, of equal ones the first.
	for name, want := range map[string]string{"user2x": "user2", "user": "user2", "usr1": "user1", "mdll": "MDL"} {
		if got := spelling.Nearest(name, []string{"user2", "user1", "MDL"}); got != want {
			t.Errorf("%q is taken for %q, want %q", name, got, want)
		}
	}
}
