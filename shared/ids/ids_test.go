package ids_test

import (
	"regexp"
	"strings"
	"testing"

	"signalbox.dev/shared/ids"
)

// FuzzParse compares the parser with the canonical form of a UUID, in any case.
func FuzzParse(f *testing.F) {
	const canonical = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
	for _, seed := range []string{
		canonical, strings.ToUpper(canonical), "0A1b2C3d-4e5F-6789-aBcD-ef0123456789", "00000000-0000-0000-0000-000000000000",
		"", "{" + canonical + "}", "urn:uuid:" + canonical, strings.ReplaceAll(canonical, "-", ""), strings.ReplaceAll(canonical, "-", "0"),
		"0a1b2c3d4-e5f-6789-abcd-ef0123456789", "0g1b2c3d-4e5f-6789-abcd-ef0123456789", " " + canonical[1:],
		canonical[:35] + "\n", canonical + "0", "\uff10" + canonical[3:], canonical[:34] + "\u0130",
	} {
		f.Add(seed)
	}
	shape := regexp.MustCompile(`^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)
	f.Fuzz(func(t *testing.T, s string) {
		want := ""
		if shape.MatchString(s) {
			want = strings.ToLower(s)
		}
		if got, ok := ids.Parse[ids.Workspace](s); string(got) != want || ok != (want != "") {
			t.Errorf("Parse(%q) = %q, %v; want %q", s, got, ok, want)
		}
	})
}

// FuzzParseFile compares the parser with the contract's regular expression.
func FuzzParseFile(f *testing.F) {
	for _, seed := range []string{
		"file_a", "file__", "file_-", "file_AZaz09_-", "file_" + strings.Repeat("x", 200), "file_" + strings.Repeat("x", 201),
		"", "file", "file_", "FILE_a", "xfile_a", "file_a b", "file_a/../b", "file_a%2Fb", "file_..", "file_a.",
		"file_\x00", "file_é", "file_\u0661", "file_a\n",
	} {
		f.Add(seed)
	}
	shape := regexp.MustCompile(`^file_[A-Za-z0-9_-]{1,200}$`)
	f.Fuzz(func(t *testing.T, s string) {
		want := ""
		if shape.MatchString(s) {
			want = s
		}
		if got, ok := ids.ParseFile(s); string(got) != want || ok != (want != "") {
			t.Errorf("ParseFile(%q) = %q, %v; want %q", s, got, ok, want)
		}
	})
}

func TestNewIDs(t *testing.T) {
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	file := regexp.MustCompile(`^file_[0-9a-f]{32}$`)
	seen := map[string]bool{}
	for range 1000 {
		id, name := string(ids.New[ids.Account]()), string(ids.NewFile())
		if !uuid.MatchString(id) || !file.MatchString(name) || seen[id] || seen[name] {
			t.Fatalf("ids %q and %q (repeated: %v, %v)", id, name, seen[id], seen[name])
		}
		seen[id], seen[name] = true, true
	}
}
