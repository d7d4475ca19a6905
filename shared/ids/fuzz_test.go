package ids_test

import (
	"regexp"
	"strings"
	"testing"

	"signalbox.dev/shared/ids"
)

// A UUID is accepted in its canonical form and in no other, and comes back in
// lower case.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"0a1b2c3d-4e5f-6789-abcd-ef0123456789",
		"0A1B2C3D-4E5F-6789-ABCD-EF0123456789",
		"{0a1b2c3d-4e5f-6789-abcd-ef0123456789}",
		"urn:uuid:0a1b2c3d-4e5f-6789-abcd-ef0123456789",
		"0a1b2c3d4e5f6789abcdef0123456789",
		"0a1b2c3d-4e5f-6789-abcd-ef012345678\n",
		"0a1b2c3d-4e5f-6789-abcd-ef01234567\u0130",
		"",
	} {
		f.Add(seed)
	}
	canonical := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	f.Fuzz(func(t *testing.T, s string) {
		want := strings.Map(asciiLower, s)
		if !canonical.MatchString(want) {
			want = ""
		}
		if got, ok := ids.Parse[ids.Workspace](s); string(got) != want || ok != (want != "") {
			t.Errorf("Parse(%q) = %q, %v; want %q", s, got, ok, want)
		}
	})
}

// asciiLower lowers nothing but ASCII: other letters have lower forms within it.
func asciiLower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// A file id is accepted as the contract writes it, and comes back as it is.
func FuzzParseFile(f *testing.F) {
	for _, seed := range []string{
		"file_a", "file_Az09_-", "file_" + strings.Repeat("x", 200), "file_" + strings.Repeat("x", 201),
		"file_", "FILE_a", "file_a/../b", "file_a%2Fb", "file_a\n", "file_\x00", "file_\u0661", "",
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
