package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFields: the rule of each member, at its limits and just past them.
func TestFields(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	own, emoji := fmt.Sprintf("%q", hashOf(n.standard)), "😀"
	for _, c := range []torture{
		refused("key empty", key(`""`), "/key"),
		refused("key null", key("null"), "/key"),
		refused("key number", key("1"), "/key"),
		refused("key list", key(`["k"]`), "/key"),
		accepted("key one character", key(`"k"`)),
		accepted("key longest", key(quoted("k", 32768))),
		refused("key too long", key(quoted("k", 32769)), "/key"),
		accepted("key longest in bytes", key(quoted("é", 16384))),
		refused("key too long in bytes", key(quoted("é", 16385)), "/key"),
		refused("provider absent", `{"key":"k"}`, "/provider"),
		refused("provider null", `{"key":"k","provider":null}`, "/provider"),
		refused("provider in upper case", `{"key":"k","provider":"OpenAI"}`, "/provider"),
		refused("provider with a space", `{"key":"k","provider":"openai "}`, "/provider"),
		refused("provider unknown", `{"key":"k","provider":"nobody"}`, "/provider"),
		accepted("name empty", bodyWith(`,"name":""`)),
		accepted("name null", bodyWith(`,"name":null`)),
		accepted("name longest", bodyWith(`,"name":`+quoted(emoji, 255))),
		refused("name too long", bodyWith(`,"name":`+quoted(emoji, 256)), "/name"),
		refused("name number", bodyWith(`,"name":7`), "/name"),
		accepted("workspace", bodyWith(`,"workspace_id":"`+n.second+`"`)),
		accepted("workspace in upper case", bodyWith(`,"workspace_id":"`+strings.ToUpper(n.second)+`"`)),
		refused("workspace null", bodyWith(`,"workspace_id":null`), "/workspace_id"),
		refused("workspace empty", bodyWith(`,"workspace_id":""`), "/workspace_id"),
		refused("workspace in braces", bodyWith(`,"workspace_id":"{`+n.second+`}"`), "/workspace_id"),
		refused("workspace without dashes", bodyWith(`,"workspace_id":"`+strings.ReplaceAll(n.second, "-", "")+`"`), "/workspace_id"),
		accepted("hashes null", bodyWith(`,"allowed_api_key_hashes":null`)),
		accepted("hash", bodyWith(`,"allowed_api_key_hashes":`+list(own, 1))),
		accepted("hash 100 times", bodyWith(`,"allowed_api_key_hashes":`+list(own, 100))),
		refused("hash 101 times", bodyWith(`,"allowed_api_key_hashes":`+list(own, 101)), "/allowed_api_key_hashes"),
		refused("no hash", bodyWith(`,"allowed_api_key_hashes":[]`), "/allowed_api_key_hashes"),
		refused("hash in upper case", bodyWith(`,"allowed_api_key_hashes":[`+strings.ToUpper(own)+`]`), "/allowed_api_key_hashes/0"),
		refused("hash too short", bodyWith(`,"allowed_api_key_hashes":[`+own+`,"abc"]`), "/allowed_api_key_hashes/1"),
		refused("hash null", bodyWith(`,"allowed_api_key_hashes":[null]`), "/allowed_api_key_hashes/0"),
		refused("hashes a string", bodyWith(`,"allowed_api_key_hashes":`+own), "/allowed_api_key_hashes"),
		accepted("true", bodyWith(`,"disabled":true,"is_byok_only":true,"is_required":true`)),
		accepted("fallback and required", bodyWith(`,"is_fallback":true,"is_required":true`)),
		accepted("false together", bodyWith(`,"is_byok_only":false,"is_fallback":true`)),
	} {
		t.Run(c.name, func(t *testing.T) { n.judges(t, c) })
	}
}

// TestListsAndFlags: the rules that several members share.
func TestListsAndFlags(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	var cases []torture
	for _, m := range []string{"allowed_models", "allowed_user_ids"} {
		member := `,"` + m + `":`
		cases = append(cases,
			accepted(m+" null", bodyWith(member+"null")),
			accepted(m+" empty", bodyWith(member+"[]")),
			accepted(m+" 100", bodyWith(member+list(`"x"`, 100))),
			refused(m+" 101", bodyWith(member+list(`"x"`, 101)), "/"+m),
			accepted(m+" longest element", bodyWith(member+"["+quoted("😀", 255)+"]")),
			refused(m+" too long an element", bodyWith(member+"["+quoted("😀", 256)+"]"), "/"+m+"/0"),
			refused(m+" bad elements", bodyWith(member+`["x","",1,null]`), "/"+m+"/1", "/"+m+"/2", "/"+m+"/3"),
			refused(m+" an object", bodyWith(member+`{}`), "/"+m),
		)
	}
	for _, m := range []string{"disabled", "is_byok_only", "is_fallback", "is_required"} {
		for _, wrong := range []string{"null", `"true"`, "1", "[]"} {
			cases = append(cases, refused(m+" "+wrong, bodyWith(`,"`+m+`":`+wrong), "/"+m))
		}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { n.judges(t, c) })
	}
}

// judges sends the body and expects what the case says.
func (n tenant) judges(t *testing.T, c torture) {
	t.Helper()
	r := post(c.body).as(n.management).do(t)
	if c.paths == nil {
		r.is(t, http.StatusCreated)
		return
	}
	r.refuses(t, c.paths...)
	if the.spec.CheckRequest("createByokKey", []byte(c.body)) == nil && !bytesRule(c) {
		t.Errorf("refused although the description allows it: %s", c.name)
	}
}

// bytesRule tells the rules that a JSON schema cannot express: it counts code
// points where we count bytes.
func bytesRule(c torture) bool { return strings.HasSuffix(c.name, "in bytes") }

// TestContradiction: the one combination of flags that is refused.
func TestContradiction(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	got := post(bodyWith(`,"is_byok_only":true,"is_fallback":true`)).as(n.management).do(t).
		is(t, http.StatusBadRequest).failure(t).Error.Metadata.Issues
	if len(got) != 1 || !strings.HasPrefix(got[0].Path, "/is_") {
		t.Errorf("got %+v, want one issue at one of the two flags", got)
	}
}

// TestAllIssuesAtOnce: everything that the request alone shows is told
// together, and no more than 100 of it.
func TestAllIssuesAtOnce(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	post(`{"provider":1,"name":2,"workspace_id":"x","allowed_api_key_hashes":["x"],"allowed_models":[""],`+
		`"allowed_user_ids":[3],"disabled":null,"key":"","more":1}`).
		as(n.management).with("Content-Type").with("Idempotency-Key", "a b").do(t).
		refuses(t, "", "", "", "/key", "/provider", "/name", "/workspace_id", "/allowed_api_key_hashes/0",
			"/allowed_models/0", "/allowed_user_ids/0", "/disabled")
	bad := list(`""`, 90)
	got := post(bodyWith(`,"allowed_models":`+bad+`,"allowed_user_ids":`+bad)).as(n.management).do(t).
		is(t, http.StatusBadRequest).failure(t).Error.Metadata.Issues
	if len(got) != 100 {
		t.Errorf("got %d issues, want 100", len(got))
	}
}

// TestProviders: each slug of the description is accepted, and its name is the
// credential's where none was given.
func TestProviders(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	slugs, err := the.spec.Enum("Provider")
	if err != nil || len(slugs) != 113 {
		t.Fatalf("got %d slugs, want 113: %v", len(slugs), err)
	}
	for _, slug := range slugs {
		c := post(`{"key":"k","provider":"` + slug + `"}`).as(n.management).do(t).created(t)
		if c.Provider != slug || c.Name != slug || c.SortOrder != 0 {
			t.Errorf("got %+v, want provider and name %q at 0", c, slug)
		}
	}
}

// TestEcho: what was stored is what was sent.
func TestEcho(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	h := hashOf(n.bound)
	began := time.Now()
	c := post(bodyWith(`,"name":"N \u00fc","workspace_id":"` + strings.ToUpper(n.second) + `","disabled":true,"is_required":true,` +
		`"is_byok_only":true,"allowed_api_key_hashes":["` + h + `","` + h + `"],"allowed_models":["a/b","a/b"],"allowed_user_ids":[]`)).
		as(n.management).do(t).created(t)
	want := credential{
		ID: c.ID, Name: "N ü", Provider: "openai", Label: label(providerKey), Workspace: n.second, CreatedAt: c.CreatedAt,
		Disabled: true, ByokOnly: true, Required: true,
		Hashes: []string{h, h}, Models: []string{"a/b", "a/b"}, Users: []string{},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The service's clock may be another machine's.
	if c.CreatedAt.Before(began.Add(-time.Minute)) || c.CreatedAt.After(time.Now().Add(time.Minute)) {
		t.Errorf("created at %v, asked for from %v to %v", c.CreatedAt, began, time.Now())
	}
}

// quoted is a JSON string of the text repeated.
func quoted(text string, times int) string { return `"` + strings.Repeat(text, times) + `"` }

// list is a JSON array of the element repeated.
func list(element string, times int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", times), ",") + "]"
}
