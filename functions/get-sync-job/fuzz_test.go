package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// An entity tag matches as RFC 9110 defines it: if the field is "*" or a list with that
// tag, weak or strong. In the grammar of sections 5.6.1.2 and 8.8.3, over bytes:
// obs-text is U+0080 to U+00FF.
func FuzzMatches(f *testing.F) {
	for _, seed := range []string{
		`"abc"`, `W/"abc"`, `*`, " *\t", `"x", "abc","y"`, `, ,"abc",,`, `"a,b", "abc"`, "\"\xe9\", \"abc\"",
		"\t\"x\" \t,\t \"abc\" ", `"abd"`, `abc`, `"abc`, `"abc"x`, `"abc" "abc"`, `x, "abc"`, `"abc", x`, `*, "abc"`, `w/"abc"`,
		`"x y", "abc"`, `"ab"`, `x","abc"`, `"abc", "`, `W/`, "\"x\x7fy\", \"abc\"", `""`, ``,
	} {
		f.Add(uint8(1), seed, "")
		f.Add(uint8(2), seed, `W/"abc"`)
	}
	const tag = `(?:W/)?("[\x21\x23-\x7e\x80-\x{ff}]*")`
	one := regexp.MustCompile(tag)
	list := regexp.MustCompile(`^[ \t]*(?:` + tag + `)?[ \t]*(?:,[ \t]*(?:` + tag + `)?[ \t]*)*$`)
	f.Fuzz(func(t *testing.T, count uint8, first, second string) {
		headers := []string{first, second}[:count%3]
		// Fields with the same name are one list (section 5.3).
		var field strings.Builder
		for _, b := range []byte(strings.Join(headers, ",")) {
			field.WriteRune(rune(b))
		}
		want := regexp.MustCompile(`^[ \t]*\*[ \t]*$`).MatchString(field.String())
		if list.MatchString(field.String()) {
			want = slices.ContainsFunc(one.FindAllStringSubmatch(field.String(), -1), func(found []string) bool {
				return found[1] == `"abc"`
			})
		}
		if got := matches(headers, `"abc"`); got != want {
			t.Errorf("%q: matches %v, want %v", headers, got, want)
		}
	})
}
