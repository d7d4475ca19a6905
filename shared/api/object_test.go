package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/issues"
)

// faults are issues, as path, message, …, with the reason that each message has.
func faults(pairs ...string) (all []issues.Issue) {
	for pair := range slices.Chunk(pairs, 2) {
		reason := issues.Invalid
		switch {
		case strings.HasPrefix(pair[1], "unknown member"):
			reason = issues.UnknownMember
		case strings.HasPrefix(pair[1], "the body is larger"):
			reason = issues.TooLarge
		}
		all = append(all, issues.Issue{Path: pair[0], Reason: reason, Message: pair[1]})
	}
	return all
}

// read reads the body as an object with the members a, b and list: text, boolean
// and array.
func read(t *testing.T, body string) *api.Object {
	t.Helper()
	o := api.NewRequest(body).Object("a", "b", "list", "allowed_models")
	o.Text("a")
	o.Bool("b")
	o.Texts("list")
	return o
}

func TestObjectReportsEveryFault(t *testing.T) {
	const (
		invalid = "contains U+FFFD, invalid UTF-8 or an unpaired surrogate"
		notJSON = "the body cannot be parsed as JSON: error at byte "
	)
	cases := map[string]struct {
		body string
		want []issues.Issue
	}{
		"nothing":              {`{}`, nil},
		"all":                  {` {"a":"x","b":true,"list":["y"]} `, nil},
		"null list":            {`{"list":null}`, nil},
		"escaped name":         {`{"\u0061":"x"}`, nil},
		"empty body":           {``, faults("", "the body is empty; it must be one JSON object")},
		"array":                {`[]`, faults("", "the body must be one JSON object")},
		"null":                 {`null`, faults("", "the body must be one JSON object")},
		"truncated":            {`{"a":`, faults("", notJSON+"5")},
		"byte order mark":      {"\ufeff{}", faults("", notJSON+"0")},
		"comment":              {`{/**/}`, faults("", notJSON+"1")},
		"trailing comma":       {`{"a":"x",}`, faults("", notJSON+"8")},
		"second value":         {`{} {}`, faults("", "trailing data after the JSON object")},
		"trailing brace":       {`{}}`, faults("", "trailing data after the JSON object")},
		"duplicate":            {`{"a":"x","a":"y"}`, faults("/a", "duplicate member")},
		"duplicate escaped":    {`{"a":"x","\u0061":"y"}`, faults("/a", "duplicate member")},
		"unknown":              {`{"sk-secret-in-the-wrong-place":1}`, faults("", "unknown member")},
		"unknown twice":        {`{"x":1,"y":2}`, faults("", "unknown member", "", "unknown member")},
		"other case":           {`{"A":"x"}`, faults("", "unknown member; did you mean a?")},
		"misspelt":             {`{"allowed_model":[]}`, faults("", "unknown member; did you mean allowed_models?")},
		"camel case":           {`{"allowedModels":[]}`, faults("", "unknown member; did you mean allowed_models?")},
		"wrong types":          {`{"a":1,"b":"true","list":{}}`, faults("/a", "must be a string", "/b", "must be true or false", "/list", "must be an array of strings, or null")},
		"elements":             {`{"list":["x",1,null,["y"],{}]}`, faults("/list/1", "must be a string", "/list/2", "must be a string", "/list/3", "must be a string", "/list/4", "must be a string")},
		"not UTF-8":            {"{\"a\":\"\xff\"}", faults("/a", invalid)},
		"lone high surrogate":  {`{"a":"\ud800"}`, faults("/a", invalid)},
		"lone low surrogate":   {`{"a":"x\udc00y"}`, faults("/a", invalid)},
		"replacement":          {"{\"a\":\"\ufffd\"}", faults("/a", invalid)},
		"replacement in list":  {`{"list":["x","\ufffd"]}`, faults("/list", invalid)},
		"whole pair":           {`{"a":"\ud83d\ude00"}`, nil},
		"raw control":          {"{\"a\":\"\n\"}", faults("", notJSON+"6")},
		"number out of range":  {`{"a":1e999}`, faults("/a", "must be a string")},
		"depth bomb in member": {`{"a":` + strings.Repeat("[", 30000) + strings.Repeat("]", 30000) + `}`, faults("", notJSON+"10004")},
		"nested name":          {`{"a":{"n\"":1}}`, faults("/a", "must be a string")},
		"invalid nested name":  {"{\"a\":{\"\xff\":1}}", faults("/a", invalid)},
		"nested name, cut off": {`{"a":{"n`, faults("", notJSON+"8")},
		"after a nested name":  {`{"a":{"n":1},"b":true}`, faults("/a", "must be a string")},
		"mixed":                {`{"a":1,"x":2,"b":[]}`, faults("", "unknown member", "/a", "must be a string", "/b", "must be true or false")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, read(t, c.body).Issues()); diff != "" {
				t.Errorf("issues (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObjectChecksHeadersAndSize(t *testing.T) {
	const (
		contentType = "Content-Type must be sent once, as application/json with charset utf-8 or none"
		encoding    = "Content-Encoding must be identity or absent"
	)
	cases := map[string]struct {
		header []string
		want   []issues.Issue
	}{
		"plain":             {[]string{"Content-Type", "application/json"}, nil},
		"upper case":        {[]string{"content-type", "Application/JSON; Charset=UTF-8"}, nil},
		"other parameter":   {[]string{"Content-Type", `application/json; profile="x"`}, nil},
		"identity":          {[]string{"Content-Type", "application/json", "Content-Encoding", "Identity"}, nil},
		"space around":      {[]string{"Content-Type", " application/json ", "Content-Encoding", " identity "}, nil},
		"half a parameter":  {[]string{"Content-Type", "application/json; charset"}, faults("", contentType)},
		"none":              {[]string{}, faults("", contentType)},
		"empty":             {[]string{"Content-Type", ""}, faults("", contentType)},
		"text":              {[]string{"Content-Type", "text/json"}, faults("", contentType)},
		"latin-1":           {[]string{"Content-Type", "application/json; charset=latin1"}, faults("", contentType)},
		"twice":             {[]string{"Content-Type", "application/json", "Content-Type", "application/json"}, faults("", contentType)},
		"list":              {[]string{"Content-Type", "application/json, text/plain"}, faults("", contentType)},
		"gzip":              {[]string{"Content-Type", "application/json", "Content-Encoding", "gzip"}, faults("", encoding)},
		"identity and gzip": {[]string{"Content-Type", "application/json", "Content-Encoding", "identity", "Content-Encoding", "gzip"}, faults("", encoding)},
		"both":              {[]string{"Content-Encoding", "br"}, faults("", contentType, "", encoding)},
	}
	for name, c := range cases {
		got := api.NewRequest(`{}`, c.header...).Object("a").Issues()
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	fits := `{"a":"` + strings.Repeat("x", 65536-8) + `"}`
	if got := read(t, fits).Issues(); got != nil {
		t.Errorf("a body of %d bytes: %v", len(fits), got)
	}
	want := faults("", "the body is larger than 65536 bytes")
	if diff := cmp.Diff(want, read(t, fits+" ").Issues()); diff != "" {
		t.Errorf("one byte more (-want +got):\n%s", diff)
	}
}

// A body of 64 KB may have 32,000 faults. Only a hundred are reported, so only they are made.
func TestManyFaultsCostLittle(t *testing.T) {
	for body, most := range map[string]float64{
		`{"list":[` + strings.Repeat("1,", 32000) + `1]}`:            1000,
		`{` + strings.Repeat(`"allowed_modell":1,`, 3000) + `"x":1}`: 10000, // the names are read
	} {
		request := api.NewRequest(body)
		if got := testing.AllocsPerRun(1, func() { request.Object("list", "allowed_models").Texts("list") }); got > most {
			t.Errorf("%.30s: %v allocations, at most %v are expected", body, got, most)
		}
	}
}

func TestReportAddsOneIssueForEachPath(t *testing.T) {
	o := read(t, `{"a":1}`)
	for _, path := range []string{"/a", "/list/0", "/list/0", "/list/1"} {
		o.Report(path, issues.Invalid, "is wrong")
	}
	want := faults("/a", "must be a string", "/list/0", "is wrong", "/list/1", "is wrong")
	if diff := cmp.Diff(want, o.Issues()); diff != "" {
		t.Errorf("issues (-want +got):\n%s", diff)
	}
	for _, unreadable := range []string{`[]`, `{"a":"x"`, `{"a":"x"}}`, strings.Repeat(" ", 65537)} {
		o := read(t, unreadable)
		o.Report("/a", issues.Invalid, "is wrong")
		if got := o.Issues(); len(got) != 1 || got[0].Path != "" {
			t.Errorf("%.10s: got %v, want one issue for the whole body", unreadable, got)
		}
	}
}

func fed(o *api.Object) string {
	var hash bytes.Buffer
	o.Feed(&hash)
	return hash.String()
}

func TestFeedIsTheSameForTheSameMembersAndValues(t *testing.T) {
	base := fed(read(t, `{"a":"é/","b":false,"list":["x","y"]}`))
	for _, same := range []string{
		"{ \"b\" : false,\n\"list\":[ \"x\", \"y\" ], \"a\":\"\\u00e9\\/\"}",
		`{"list":["\u0078","y"],"\u0061":"é/","b":false}`,
	} {
		if got := fed(read(t, same)); got != base {
			t.Errorf("%s becomes %q, not %q", same, got, base)
		}
	}
	seen := map[string]string{base: ""}
	for _, other := range []string{
		`{}`,
		`{"a":""}`,
		`{"a":"null"}`,
		`{"list":null}`,
		`{"list":[]}`,
		`{"list":[""]}`,
		`{"list":["xy"]}`,
		`{"list":["x","y"]}`,
		`{"list":["y","x"]}`,
		`{"allowed_models":["x","y"]}`,
		`{"b":true}`,
		`{"b":false}`,
		`{"a":"é/","list":["x","y"]}`,
		`{"a":"é/","b":true,"list":["x","y"]}`,
		`{"a":"e\u0301/","b":false,"list":["x","y"]}`,
	} {
		got := fed(read(t, other))
		if twin, ok := seen[got]; ok {
			t.Errorf("%s becomes %q, like %s", other, got, twin)
		}
		seen[got] = other
	}
}

func FuzzObject(f *testing.F) {
	for _, seed := range []string{`{"a":"x","b":true,"list":["y","zz"]}`, `{"list":["y",null]}`, `{"a":"\ud800"}`, "\ufeff{}", `{"a":1,"a":2}`, `{"lists":1,"hashes":2}`,
		`{"a":["x"]}`, `{"list":1}`, `{"a":`, `{5:1}`, "{\"\xff\":1}", `[[[[`, ``} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		o := read(t, body)
		text, list := o.Text("a"), o.Texts("list")
		if len(o.Issues()) > 0 {
			for _, i := range o.Issues() {
				if strings.Contains(i.Path, "\ufffd") || i.Message == "" {
					t.Fatalf("issue %q", i)
				}
			}
			return
		}
		var want struct {
			A    string
			List []string
		}
		if err := json.Unmarshal([]byte(body), &want); err != nil || text != want.A || !slices.Equal(list, want.List) {
			t.Fatalf("%q reads as %q and %q, %v", body, text, list, err)
		}
		// An accepted object reads the same after it was encoded again.
		again := read(t, fmt.Sprintf(`{"a":%s,"list":%s}`, api.JSON(text), api.JSON(list)))
		if len(again.Issues()) > 0 || again.Text("a") != text || !cmp.Equal(again.Texts("list"), list) {
			t.Fatalf("%q reads as %q and %q, then as %q and %q (%v)", body, text, list, again.Text("a"), again.Texts("list"), again.Issues())
		}
		if same := o.Has("a") && o.Has("list") && !o.Has("b") && !o.Has("allowed_models"); same && fed(again) != fed(o) {
			t.Fatalf("%q is fed as %q, encoded again as %q", body, fed(o), fed(again))
		}
	})
}
