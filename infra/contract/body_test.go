package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// torture is a body and the paths of the issues it must be refused for; with
// none it must be accepted.
type torture struct {
	name, body string
	paths      []string
}

func refused(name, body string, paths ...string) torture { return torture{name, body, paths} }

func accepted(name, body string) torture { return torture{name: name, body: body} }

// bodyWith is a body with all that is required, and the members given.
func bodyWith(members string) string {
	return `{"key":"` + providerKey + `","provider":"openai"` + members + `}`
}

// key is a body with this JSON text as its key.
func key(text string) string { return `{"provider":"openai","key":` + text + `}` }

func TestStrictJSON(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for _, c := range append(notOneObject(), mangledText()...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := post(c.body).as(n.management).do(t)
			if c.paths == nil {
				r.is(t, http.StatusCreated)
				return
			}
			r.refuses(t, c.paths...)
		})
	}
}

// notOneObject lists bodies that are not exactly one JSON object whose members
// are all known and all there once.
func notOneObject() []torture {
	return []torture{
		accepted("plain", bodyWith("")),
		accepted("white space around", " \t\r\n"+bodyWith("")+" \t\r\n"),
		refused("nothing", "", ""),
		refused("white space", " \n ", ""),
		refused("null", "null", ""),
		refused("array", "["+bodyWith("")+"]", ""),
		refused("string", `"text"`, ""),
		refused("number", "1", ""),
		refused("not closed", strings.TrimSuffix(bodyWith(""), "}"), ""),
		refused("cut in a string", `{"key":"abc`, ""),
		refused("trailing comma", bodyWith(","), ""),
		refused("second object", bodyWith("")+"{}", ""),
		refused("text after", bodyWith("")+" x", ""),
		refused("zero byte after", bodyWith("")+"\x00", ""),
		refused("byte order mark", "\ufeff"+bodyWith(""), ""),
		refused("comment", bodyWith("/* */"), ""),
		refused("single quotes", `{'key':'k','provider':'openai'}`, ""),
		refused("bare name", `{key:"k","provider":"openai"}`, ""),
		refused("NaN", bodyWith(`,"name":NaN`), ""),
		refused("leading zero", bodyWith(`,"name":01`), ""),
		refused("raw line break", key("\"a\nb\""), ""),
		refused("bad escape", key(`"\x41"`), ""),
		refused("short escape", key(`"\u41"`), ""),
		refused("upper-case literal", bodyWith(`,"disabled":True`), ""),
		refused("member twice", bodyWith(`,"key":"other"`), "/key"),
		refused("member twice, the same", bodyWith(`,"provider":"openai"`), "/provider"),
		refused("member twice, escaped", bodyWith(`,"\u006bey":"other"`), "/key"),
		refused("unknown member", bodyWith(`,"nonsense":1`), ""),
		refused("unknown members", bodyWith(`,"x":1,"x":2`), "", ""),
		refused("other case", bodyWith(`,"Key":"other"`), ""),
		refused("other case instead", `{"Key":"k","provider":"openai"}`, "", "/key"),
		refused("empty name", bodyWith(`,"":1`), ""),
		refused("name with a space", bodyWith(`,"key ":1`), ""),
		refused("empty object", "{}", "/key", "/provider"),
		refused("deep array", bodyWith(`,"allowed_models":`+strings.Repeat("[", 30000)), ""),
		refused("deep object", bodyWith(`,"x":`+strings.Repeat(`{"x":`, 10000)), ""),
		accepted("largest", bodyWith("")+strings.Repeat(" ", 65536-len(bodyWith("")))),
		refused("one byte too large", bodyWith("")+strings.Repeat(" ", 65537-len(bodyWith(""))), ""),
		refused("far too large", bodyWith(`,"name":"`+strings.Repeat("n", 200_000)+`"`), ""),
	}
}

// mangledText lists bodies whose text was damaged on its way, or only looks so.
func mangledText() []torture {
	return []torture{
		accepted("surrogate pair", key(`"\ud83d\ude00"`)),
		accepted("four-byte character", key(`"😀"`)),
		accepted("escaped zero", key(`"a\u0000b"`)),
		accepted("line breaks", key(`"-----BEGIN\nKEY\r\n"`)),
		accepted("a document", key(`"{\"type\":\"service_account\"}"`)),
		accepted("noncharacter", key(`"\uffff"`)),
		refused("replacement character", key(`"a�b"`), "/key"),
		refused("replacement escaped", key(`"a\ufffdb"`), "/key"),
		refused("lone high surrogate", key(`"\ud83d"`), "/key"),
		refused("lone low surrogate", key(`"\ude00"`), "/key"),
		refused("surrogates swapped", key(`"\ude00\ud83d"`), "/key"),
		refused("high surrogate, then text", key(`"\ud83dabc"`), "/key"),
		refused("mangled in a list", bodyWith(`,"allowed_models":["ok","a�"]`), "/allowed_models"),
		refused("mangled name", bodyWith(`,"nam�":1`), ""),
		refused("not UTF-8", key("\"a\xffb\""), "/key"),
		refused("overlong", key("\"a\xc0\xafb\""), "/key"),
		refused("surrogate in UTF-8", key("\"\xed\xa0\x80\""), "/key"),
		refused("cut character", key("\"\xf0\x9f\x98\""), "/key"),
	}
}

// TestWithoutSecretsInIssues: a secret that stands where a name belongs is not
// repeated (every response is searched for it), a slip of the pen is helped.
func TestWithoutSecretsInIssues(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	post(bodyWith(fmt.Sprintf(`,%q:1`, providerKey))).as(n.management).do(t).refuses(t, "")
	post(fmt.Sprintf(`{"key":{%q:1},"provider":%q}`, providerKey, providerKey)).as(n.management).do(t).
		refuses(t, "/key", "/provider")
	messages := post(bodyWith(`,"allowed_model":["x"]`)).as(n.management).do(t).refuses(t, "")
	if want := "unknown member; did you mean allowed_models?"; messages[0] != want {
		t.Errorf("got %q, want %q", messages[0], want)
	}
}

// TestContentHeaders: the body must say that it is plain JSON.
func TestContentHeaders(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for _, c := range []struct {
		name   string
		values []string
		right  bool
	}{
		{"Content-Type", []string{"application/json"}, true},
		{"Content-Type", []string{"Application/JSON"}, true},
		{"Content-Type", []string{"application/json; charset=utf-8"}, true},
		{"Content-Type", []string{`application/json;charset="UTF-8"`}, true},
		{"Content-Type", []string{"application/json; profile=x"}, true},
		{"Content-Type", nil, false},
		{"Content-Type", []string{""}, false},
		{"Content-Type", []string{"text/plain"}, false},
		{"Content-Type", []string{"application/json; charset=iso-8859-1"}, false},
		{"Content-Type", []string{"application/problem+json"}, false},
		{"Content-Type", []string{"application/x-www-form-urlencoded"}, false},
		{"Content-Type", []string{"application/json, text/plain"}, false},
		{"Content-Type", []string{"application/json", "application/json"}, false},
		{"Content-Encoding", []string{"identity"}, true},
		{"Content-Encoding", []string{"gzip"}, false},
		{"Content-Encoding", []string{"identity, gzip"}, false},
	} {
		t.Run(fmt.Sprint(c.name, c.values), func(t *testing.T) {
			r := post(bodyWith("")).as(n.management).with(c.name, c.values...).do(t)
			if c.right {
				r.is(t, http.StatusCreated)
			} else {
				r.refuses(t, "")
			}
		})
	}
}
