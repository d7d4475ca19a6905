package gateway_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// event is a proxy event.
type event struct {
	Resource, Path, HTTPMethod, Body                   *string
	Headers, QueryStringParameters, PathParameters     map[string]string
	MultiValueHeaders, MultiValueQueryStringParameters map[string][]string
	StageVariables                                     map[string]string
	IsBase64Encoded                                    bool
	RequestContext                                     struct {
		RequestID, ResourcePath, HTTPMethod, Stage, Path, Protocol, RequestTime string
		Identity                                                                struct{ SourceIP string }
	}
}

func TestEvent(t *testing.T) {
	f := &functions{answer: fixed(ok)}
	address := start(t, f)
	response, _ := send(t, address, "GET /v1/things/a%2Fb%20c?q=1&q=2+3&x=%41&bad=%zz&flag HTTP/1.1\r\n"+
		"Host: local:3000\r\nAuthorization: Bearer a\r\nauthorization: Bearer b\r\nX-Request-Id: mine\r\n"+
		"X-Empty:\r\nConnection: keep-alive\r\nTE: trailers\r\n\r\n")
	e := f.event(t)
	if *e.Resource != "/v1/things/{id}" || *e.Path != "/v1/things/a%2Fb%20c" || e.Body != nil || e.IsBase64Encoded {
		t.Errorf("got %s", f.last)
	}
	for _, diff := range []string{
		cmp.Diff(map[string]string{"id": "a%2Fb%20c"}, e.PathParameters),
		cmp.Diff(map[string][]string{"q": {"1", "2 3"}, "x": {"A"}, "bad": {"%zz"}, "flag": {""}}, e.MultiValueQueryStringParameters),
		cmp.Diff(map[string]string{"q": "2 3", "x": "A", "bad": "%zz", "flag": ""}, e.QueryStringParameters),
		cmp.Diff([]string{"Bearer a", "Bearer b"}, e.MultiValueHeaders["Authorization"]),
	} {
		if diff != "" {
			t.Error(diff)
		}
	}
	if e.Headers["X-Request-Id"] != "mine" || e.Headers["Host"] != "local:3000" {
		t.Errorf("headers are %v", e.Headers)
	}
	if value, ok := e.Headers["X-Empty"]; !ok || value != "" {
		t.Error("the empty header is missing")
	}
	for _, name := range []string{"Te", "Connection"} {
		if _, ok := e.Headers[name]; ok {
			t.Errorf("%s reached the function", name)
		}
	}
	c := e.RequestContext
	if c.ResourcePath != "/v1/things/{id}" || c.Path != *e.Path || c.Stage != "live" || c.HTTPMethod != "GET" ||
		c.Protocol != "HTTP/1.1" || c.Identity.SourceIP != "127.0.0.1" || e.StageVariables["limit"] != "7" {
		t.Errorf("request context is %+v", c)
	}
	if got := response.Header.Get("X-Amzn-Requestid"); got != c.RequestID || got == "" || got == "mine" {
		t.Errorf("x-amzn-RequestId is %q, the event has %q", got, c.RequestID)
	}
}

// Query and header names that become equal as UTF-8 are one name.
func TestInvalidUTF8(t *testing.T) {
	f := &functions{answer: fixed(ok)}
	send(t, start(t, f), "GET /v1/things/a?%ff=1&%fe=2&%ef%bf%bd=3&\xff=4&%ff%fe=%ff&%zz=%&%zz=\xc3 HTTP/1.1\r\n"+
		"Host: a\r\nX-\xff: a\r\nX-\xfe: b\xff\r\nA: \xff\r\n\t\xfe\r\n\r\n")
	e := f.event(t)
	want := map[string][]string{"\ufffd": {"1", "2", "3", "4"}, "\ufffd\ufffd": {"\ufffd"}, "%zz": {"%", "\ufffd"}}
	if diff := cmp.Diff(want, e.MultiValueQueryStringParameters); diff != "" {
		t.Error(diff)
	}
	if n := strings.Count(string(f.last), `"4"`); n != 2 || e.QueryStringParameters["\ufffd"] != "4" {
		t.Errorf("got %s", f.last)
	}
	if diff := cmp.Diff([]string{"a", "b\ufffd"}, e.MultiValueHeaders["X-_"]); diff != "" || e.Headers["A"] != "\ufffd \ufffd" {
		t.Errorf("got %s %s", f.last, diff)
	}
}

func TestBody(t *testing.T) {
	f := &functions{answer: fixed(ok)}
	address := start(t, f)
	for sent, want := range map[string]string{`{"a":"ü"}`: `{"a":"ü"}`, "a\xffb\xc3": "a\ufffdb\ufffd", "<&>\u2028\x00": "<&>\u2028\x00", "\ufeff{}": "\ufeff{}"} {
		send(t, address, post(sent))
		if e := f.event(t); e.Body == nil || *e.Body != want || e.PathParameters != nil {
			t.Errorf("sent %q, got %s", sent, f.last)
		}
	}
	send(t, address, post(""))
	if e := f.event(t); e.Body != nil {
		t.Errorf("got %s for an empty body", f.last)
	}
}
