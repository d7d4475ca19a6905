package contract_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/shared/byok"
)

// TestStrictJSON sends bodies that the gateway could change or lose on their way into an
// event. FuzzDecode has the other rules. Issues are expected at path; "-" means none.
func TestStrictJSON(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for _, c := range []struct{ name, body, path string }{
		{"white space around", " \t\r\n" + bodyWith("") + " \t\r\n", "-"},
		{"empty", "", ""},
		{"NUL after", bodyWith("") + "\x00", ""},
		{"object after", bodyWith("") + "{}", ""},
		{"byte order mark", "\ufeff" + bodyWith(""), ""},
		{"largest", bodyWith("") + strings.Repeat(" ", 65536-len(bodyWith(""))), "-"},
		{"one byte too large", bodyWith("") + strings.Repeat(" ", 65537-len(bodyWith(""))), ""},
		{"far too large", bodyWith(`,"name":"` + strings.Repeat("n", 200_000) + `"`), ""},
		{"four-byte character", keyBody(`"😀"`), "-"},
		{"not UTF-8", keyBody("\"a\xffb\""), "/key"},
		{"surrogate in UTF-8", keyBody("\"\xed\xa0\x80\""), "/key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := post(c.body).As(n.management).Do(t)
			if c.path == "-" {
				r.Is(t, http.StatusCreated)
				return
			}
			r.Refuses(t, c.path)
		})
	}
}

// TestFields sends each member with values of every type, at its bounds and past them: code
// and description must agree. (checkEnvelope compares accepted requests, too.)
func TestFields(t *testing.T) {
	t.Parallel()
	for _, member := range the.spec.Members("ByokCredentialInput") {
		t.Run(member, func(t *testing.T) {
			t.Parallel()
			n := newTenant(t)
			tried := map[bool]int{}
			for _, value := range append(fieldValues(n)[member], "null", "true", "7", "[]", `["x"]`, "{}", `""`, `"x"`) {
				tried[n.agrees(t, member, value)]++
			}
			if tried[true] == 0 || tried[false] == 0 {
				t.Errorf("the description allows %d and refuses %d of the values of %s: add some", tried[true], tried[false], member)
			}
		})
	}
}

// fieldValues are values of each member of a new credential, in JSON. An object's other
// members may follow.
func fieldValues(n tenant) map[string][]string {
	text := func(letter string, length int) string { return `"` + strings.Repeat(letter, length) + `"` }
	list := func(element string, length int) string {
		return "[" + strings.Join(slices.Repeat([]string{element}, length), ",") + "]"
	}
	names := []string{list(`"x"`, 100), list(`"x"`, 101), list(text("😀", 255), 1), list(text("😀", 256), 1), `["x",""]`, `["x",null]`, `["x",1]`}
	hash := text(hashOf(n.standard), 1)
	return map[string][]string{
		"key":                    {text("k", 32768), text("k", 32769)},
		"provider":               {`"z-ai"`, `"Z-AI"`, `"z-ai "`},
		"name":                   {text("😀", 255), text("😀", 256)},
		"workspace_id":           {text(n.second, 1), text(strings.ToUpper(n.second), 1), text(n.second+" ", 1), text(strings.ReplaceAll(n.second, "-", ""), 1)},
		"allowed_api_key_hashes": {list(hash, 1), list(hash, 100), list(hash, 101), list(strings.ToUpper(hash), 1), list(hash[:64]+`"`, 1), "[" + hash + ",null]"},
		"allowed_models":         names,
		"allowed_user_ids":       names,
		"is_byok_only":           {"false", `true,"is_fallback":false`, `true,"is_fallback":true`},
		"is_fallback":            {"false", `true,"is_required":true`},
	}
}

// agrees compares the response to a member's value with the description, and reports
// whether that allows it.
func (n tenant) agrees(t *testing.T, member, value string) (allowed bool) {
	t.Helper()
	members := map[string]string{"key": `"k"`, "provider": `"openai"`, member: value}
	var all []string
	for name, value := range members {
		all = append(all, `"`+name+`":`+value)
	}
	body := "{" + strings.Join(all, ",") + "}"
	allowed = the.spec.CheckRequest("createByokKey", []byte(body)) == nil
	got := post(body).As(n.management).Do(t)
	if got.Status != http.StatusCreated && got.Status != http.StatusBadRequest || allowed != (got.Status == http.StatusCreated) {
		t.Errorf("the description allows %s as %.40s (%d bytes): %t; it got %d %.300s", member, value, len(value), allowed, got.Status, got.Body)
	}
	for _, path := range got.Issues() {
		if path != "/"+member && !strings.HasPrefix(path, "/"+member+"/") {
			t.Errorf("%s as %.40s: an issue at %q", member, value, path)
		}
	}
	return allowed
}

// TestProviders: the description has the slugs that the service accepts.
func TestProviders(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(byok.Providers(), the.spec.Enum("Provider")); diff != "" {
		t.Errorf("accepted - and described +:\n%s", diff)
	}
}
