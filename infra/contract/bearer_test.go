package contract_test

import (
	"net/http"
	"strings"
	"testing"
)

// header sends these values of Authorization and expects the reason.
type header struct {
	name   string
	values []string
	reason string
}

func bearer(name, value, reason string) header { return header{name, []string{value}, reason} }

// TestAuthorizationHeader: exactly one header, "Bearer" in any case, spaces,
// 1 to 256 characters of b64token. What has the shape is looked up, what has
// not is not.
func TestAuthorizationHeader(t *testing.T) {
	t.Parallel()
	token := marker + "0123456789"
	long := strings.Repeat("k", 256)
	for _, h := range []header{
		{"no header", nil, "missing"},
		{"two headers", []string{"Bearer " + token, "Bearer " + token}, "malformed"},
		{"two headers, one empty", []string{"Bearer " + token, ""}, "malformed"},
		bearer("empty", "", "malformed"),
		bearer("scheme alone", "Bearer", "malformed"),
		bearer("scheme and space", "Bearer ", "malformed"),
		bearer("other scheme", "Basic "+token, "malformed"),
		bearer("no scheme", token, "malformed"),
		bearer("scheme with colon", "Bearer: "+token, "malformed"),
		bearer("scheme run together", "Bearer"+token, "malformed"),
		bearer("tab for space", "Bearer\t"+token, "malformed"),
		bearer("two tokens", "Bearer "+token+" "+token, "malformed"),
		bearer("comma list", "Bearer "+token+",Bearer "+token, "malformed"),
		bearer("quoted", `Bearer "`+token+`"`, "malformed"),
		bearer("not ASCII", "Bearer "+token+"é", "malformed"),
		bearer("padding first", "Bearer =abc", "malformed"),
		bearer("padding alone", "Bearer ===", "malformed"),
		bearer("padding inside", "Bearer ab=cd", "malformed"),
		bearer("forbidden character", "Bearer abc$def", "malformed"),
		bearer("percent-encoded", "Bearer abc%20def", "malformed"),
		bearer("one character too many", "Bearer "+long+"k", "malformed"),
		bearer("longest", "Bearer "+long, "unknown_key"),
		bearer("longest with padding", "Bearer "+long[:254]+"==", "unknown_key"),
		bearer("shortest", "Bearer k", "unknown_key"),
		bearer("every character", "Bearer AZaz09-._~+/==", "unknown_key"),
		bearer("lower-case scheme", "bearer "+token, "unknown_key"),
		bearer("odd-case scheme", "bEaReR "+token, "unknown_key"),
		bearer("several spaces", "Bearer    "+token, "unknown_key"),
	} {
		t.Run(h.name, func(t *testing.T) {
			for _, r := range []request{get(unknownJob), post("{"), del("file_unknown")} {
				r.with("Authorization", h.values...).do(t).because(t, h.reason)
			}
		})
	}
}

// TestSchemeIsFree: what the table above calls "unknown_key" does let a real
// key in.
func TestSchemeIsFree(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for _, scheme := range []string{"Bearer ", "bearer ", "BEARER   "} {
		get(unknownJob).with("Authorization", scheme+n.management).do(t).is(t, http.StatusNotFound)
	}
}

// TestHeaderNameIsFree: header names have no case.
func TestHeaderNameIsFree(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for _, name := range []string{"authorization", "AUTHORIZATION", "aUTHORIZATION"} {
		get(unknownJob).with(name, "Bearer "+n.management).do(t).is(t, http.StatusNotFound)
	}
}

// TestReasons: what a stored key lacks is told, in the order of the contract,
// and a change is felt at the next request.
func TestReasons(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	expired := n.key(t, standardKey().expired())
	both := n.key(t, managementKey().expired())
	n.disable(t, both)
	get(unknownJob).as(expired).do(t).because(t, "expired")
	del("file_unknown").as(expired).do(t).because(t, "expired")
	get(unknownJob).as(both).do(t).because(t, "disabled")
	post("{").as(both).do(t).because(t, "disabled")
	get(unknownJob).as(n.standard).do(t).because(t, "management_key_required")
	forbidden := post("{").as(n.standard).do(t).is(t, http.StatusForbidden).failure(t)
	if want := "Only management keys can perform this operation"; forbidden.Error.Message != want {
		t.Errorf("got %q, want %q", forbidden.Error.Message, want)
	}

	get(unknownJob).as(n.management).do(t).is(t, http.StatusNotFound)
	n.disable(t, n.management)
	get(unknownJob).as(n.management).do(t).because(t, "disabled")
	n.remove(t, n.management)
	get(unknownJob).as(n.management).do(t).because(t, "unknown_key")
}
