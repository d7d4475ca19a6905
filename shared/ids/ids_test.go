package ids_test

import (
	"regexp"
	"strings"
	"testing"

	"signalbox.dev/shared/ids"
)

func TestParse(t *testing.T) {
	const canonical = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
	accepted := map[string]string{
		"canonical":  canonical,
		"upper case": strings.ToUpper(canonical),
		"mixed case": "0A1b2C3d-4e5F-6789-aBcD-ef0123456789",
		"nil uuid":   "00000000-0000-0000-0000-000000000000",
	}
	for name, s := range accepted {
		got, ok := ids.Parse[ids.Job](s)
		if !ok || string(got) != strings.ToLower(s) {
			t.Errorf("%s: Parse(%q) = %q, %v", name, s, got, ok)
		}
	}
	refused := map[string]string{
		"empty":             "",
		"braces":            "{" + canonical + "}",
		"urn":               "urn:uuid:" + canonical,
		"no dashes":         strings.ReplaceAll(canonical, "-", ""),
		"dash misplaced":    "0a1b2c3d4-e5f-6789-abcd-ef0123456789",
		"digits for dashes": strings.ReplaceAll(canonical, "-", "0"),
		"not hex":           "0g1b2c3d-4e5f-6789-abcd-ef0123456789",
		"space":             " " + canonical[1:],
		"newline":           canonical[:35] + "\n",
		"too long":          canonical + "0",
		"full-width digit":  "\uff10" + canonical[3:],
	}
	for name, s := range refused {
		if got, ok := ids.Parse[ids.Job](s); ok || got != "" {
			t.Errorf("%s: Parse(%q) = %q, %v; want refusal", name, s, got, ok)
		}
	}
}

func TestNewIsACanonicalVersion4(t *testing.T) {
	shape := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[ids.Account]bool{}
	for range 1000 {
		id := ids.New[ids.Account]()
		if !shape.MatchString(string(id)) || seen[id] {
			t.Fatalf("New() = %q (repeated: %v)", id, seen[id])
		}
		seen[id] = true
	}
}

func TestParseFile(t *testing.T) {
	for _, s := range []string{"file_a", "file__", "file_-", "file_AZaz09_-", "file_" + strings.Repeat("x", 200)} {
		if got, ok := ids.ParseFile(s); !ok || string(got) != s {
			t.Errorf("ParseFile(%q) = %q, %v", s, got, ok)
		}
	}
	refused := []string{
		"", "file", "file_", "FILE_a", "xfile_a", "file_a b", "file_a/b", "file_a%2Fb", "file_..", "file_a.",
		"file_\x00", "file_é", "file_a\n", "file_" + strings.Repeat("x", 201),
	}
	for _, s := range refused {
		if got, ok := ids.ParseFile(s); ok || got != "" {
			t.Errorf("ParseFile(%q) = %q, %v; want refusal", s, got, ok)
		}
	}
	if made := ids.NewFile(); !strings.HasPrefix(string(made), "file_") {
		t.Errorf("NewFile() = %q", made)
	} else if _, ok := ids.ParseFile(string(made)); !ok {
		t.Errorf("NewFile() = %q, which is no file id", made)
	}
}
