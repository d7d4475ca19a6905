package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/local/gateway"
	"signalbox.dev/infra/local/runtime"
	"signalbox.dev/infra/local/template"
)

// functions answers each event as the test says and keeps it.
type functions struct {
	answer func(context.Context) ([]byte, error)
	last   []byte
	all    []string // the paths that were asked for
}

func (f *functions) Invoke(ctx context.Context, _ string, event []byte) ([]byte, error) {
	f.last = event
	var e struct{ Path string }
	if err := json.Unmarshal(event, &e); err != nil {
		return nil, err
	}
	f.all = append(f.all, e.Path)
	return f.answer(ctx)
}

func (f *functions) event(t *testing.T) event {
	t.Helper()
	var e event
	if err := json.Unmarshal(f.last, &e); err != nil {
		t.Fatalf("%s: %v", f.last, err)
	}
	return e
}

func says(answer string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(answer), nil }
}

const ok = `{"statusCode":200,"headers":{"Content-Type":"application/json"},"body":"{}"}`

// start serves the test template and returns the address.
func start(t *testing.T, f gateway.Functions) string {
	t.Helper()
	return startFrom(t, "testdata/template.yaml", f)
}

func startFrom(t *testing.T, path string, f gateway.Functions) string {
	t.Helper()
	loaded, err := template.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	api, err := loaded.API()
	if err != nil {
		t.Fatal(err)
	}
	g := gateway.New(gateway.Config{
		API: api, Functions: f, Account: "000000000000", Timeout: time.Second, Log: slog.New(slog.DiscardHandler),
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := g.Server()
	go func() { _ = server.Serve(g.Listener(listener)) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// send writes a request as it stands and reads the response.
func send(t *testing.T, address, text string) (*http.Response, string) {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if _, err := io.WriteString(connection, text); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(text, " ")
	response, err := http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: local:3000\r\n\r\n" }

func post(body string) string {
	return fmt.Sprintf("POST /v1/things HTTP/1.1\r\nHost: local:3000\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func TestUnknownRoutes(t *testing.T) {
	f := &functions{answer: says(ok)}
	address := start(t, f)
	for _, line := range []string{
		"GET /", "GET /v1/things", "GET /v1/things/", "GET /v1/things/a/", "GET /v1/things/a/b", "GET //v1/things/a",
		"GET /v1//things/a", "GET /v1/./things/a", "GET /v1/x/../things/a", "GET /V1/things/a", "GET /v1/thing%73/a", "HEAD /v1/things/a",
		"OPTIONS /v1/things", "OPTIONS *", "PUT /v1/things", "POST /v1/things/a", "POST /v1/things/", "get /v1/things/a", "GET /live/v1/things/a",
	} {
		t.Run(line, func(t *testing.T) {
			response, body := send(t, address, line+" HTTP/1.1\r\nHost: local\r\n\r\n")
			method, _, _ := strings.Cut(line, " ")
			want := fmt.Sprintf(`{"code":404,"id":"%s","method":"%s"}`, response.Header.Get("X-Request-Id"), method)
			if method == "HEAD" {
				want = ""
			}
			if response.StatusCode != 404 || body != want {
				t.Errorf("got %d %s, want %s", response.StatusCode, body, want)
			}
			header := response.Header
			if header.Get("Content-Type") != "application/json" || header.Get("Cache-Control") != "no-store" ||
				header.Get("X-Request-Id") != header.Get("x-amzn-RequestId") || header.Get("X-Request-Id") == "" {
				t.Errorf("headers are %v", header)
			}
		})
	}
	if f.last != nil {
		t.Errorf("a function was asked: %s", f.last)
	}
}

// The absolute form is what a client behind a proxy sends.
func TestAbsoluteForm(t *testing.T) {
	f := &functions{answer: says(ok)}
	send(t, start(t, f), get("http://local:3000/v1/things/a%2fb"))
	if e := f.event(t); e.PathParameters["id"] != "a%2fb" {
		t.Errorf("got %v", e.PathParameters)
	}
}

// net/http answers these before any handler is asked.
func TestUnreadableRequests(t *testing.T) {
	address := start(t, &functions{answer: says(ok)})
	for name, text := range map[string]string{
		"bad host":          get("http://[::1/v1/things/a"),
		"no path":           get("v1/things/a"),
		"expectation":       "GET /v1/things/a HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n",
		"no host":           "GET /v1/things/a HTTP/1.1\r\n\r\n",
		"two hosts":         "GET /v1/things/a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"bad header":        "GET /v1/things/a HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n",
		"folded value":      "GET /v1/things/a HTTP/1.1\r\nHost: a\r\nA: b\r\n \x01\xff\r\n\r\n",
		"bad value":         "GET /v1/things/a HTTP/1.1\r\nHost: a\r\nA: \x01\r\n\r\n",
		"two lengths":       "POST /v1/things HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"unknown encoding":  "POST /v1/things HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
		"space in the path": get("/v1/things/a b"),
		"huge header":       "GET /v1/things/a HTTP/1.1\r\nHost: a\r\nA: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			response, body := send(t, address, text)
			if response.StatusCode != 400 || body != `{"code":400}` || response.Header.Get("x-amzn-RequestId") == "" {
				t.Errorf("got %d %s %v", response.StatusCode, body, response.Header)
			}
		})
	}
}

const thing = "POST /v1/things HTTP/1.1\r\nHost: a\r\n"

// What net/http refuses in a target reaches the function as it was sent, however
// requests follow each other on a connection. It is refused past a body in chunks
// and past a header on several lines.
func TestAnyTarget(t *testing.T) {
	for _, odd := range []string{
		thing + "Transfer-Encoding: chunked\r\n\r\n3\r\na%b\r\n0\r\n\r\n",
		thing + "Content-Length:\r\n 3\r\n\r\na%b",
		thing + "content-length:\r\n\t3\r\n\r\na%b",
	} {
		anyTarget(t, odd)
	}
}

func anyTarget(t *testing.T, odd string) {
	t.Helper()
	f := &functions{answer: says(ok)}
	connection, err := net.Dial("tcp", start(t, f))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	responses := bufio.NewReader(connection)
	for _, c := range []struct {
		sent   string
		status int
		paths  []string
	}{
		{get("/v1/things/%zz?%zz=%&a=%41"), 200, []string{"/v1/things/%zz"}},
		{get("/v1/things/%") + get("/v1/things/%2?%") + get("/v1/things/%61"), 200, []string{"/v1/things/%", "/v1/things/%2", "/v1/things/%61"}},
		{get("/v1/things/a\x00\x7f\xff\t\rb"), 200, []string{"/v1/things/a\x00\x7f\ufffd\t\rb"}},
		{get("http://lo%zz/v1/things/%zz"), 200, []string{"/v1/things/%zz"}},
		{"GET /v1/things/a HTTP/1.1\r\nHost: a\r\nX-\xff\xfe: \xff\r\n\xff:\r\nB:\xff:\xff\r\n\r\n", 200, []string{"/v1/things/a"}},
		{post(get("/v1/things/%zz")) + "\r\n" + get("/v1/things/%zz"), 200, []string{"/v1/things", "/v1/things/%zz"}},
		{post(strings.Repeat("% ", 5000)) + get("/v1/things/%zz"), 200, []string{"/v1/things", "/v1/things/%zz"}},
		{get("/x://y/v1/things/a"), 404, nil},
		{thing + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n%%" + get("/v1/things/%zz"), 200, []string{"/v1/things", "/v1/things/%zz"}},
		{odd + get("/v1/things/%61"), 200, []string{"/v1/things", "/v1/things/%61"}},
		{get("/v1/things/%zz"), 400, nil},
	} {
		f.all = nil
		if _, err := io.WriteString(connection, c.sent); err != nil {
			t.Fatal(err)
		}
		for range max(1, len(c.paths)) {
			response, err := http.ReadResponse(responses, nil)
			if err != nil {
				t.Fatalf("%.80q: %v", c.sent, err)
			}
			if _, err := io.Copy(io.Discard, response.Body); err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != c.status {
				t.Errorf("%.80q: %d, want %d", c.sent, response.StatusCode, c.status)
			}
		}
		if diff := cmp.Diff(c.paths, f.all); diff != "" {
			t.Errorf("%.80q: %s", c.sent, diff)
		}
	}
}

func TestLargeAndBrokenBodies(t *testing.T) {
	f := &functions{answer: says(ok)}
	address := start(t, f)
	response, body := send(t, address, fmt.Sprintf("POST /v1/things HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", 3*gateway.MaxBody, strings.Repeat("x", 3*gateway.MaxBody)))
	if response.StatusCode != 400 || body != `{"code":400,"large":true}` {
		t.Errorf("got %d %s for a body over 10 MB", response.StatusCode, body)
	}
	response, body = send(t, address, "POST /v1/things HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
	if response.StatusCode != 400 || body != `{"code":400,"body":true}` {
		t.Errorf("got %d %s for a broken chunk", response.StatusCode, body)
	}
	if f.last != nil {
		t.Error("a function was asked")
	}
}

func TestThrottled(t *testing.T) {
	address := start(t, &functions{answer: says(ok)})
	if response, _ := send(t, address, get("/once")); response.StatusCode != 200 {
		t.Errorf("the first got %d", response.StatusCode)
	}
	response, body := send(t, address, get("/once"))
	if response.StatusCode != 429 || body != `{"code":429,"type":"THROTTLED"}` || response.Header.Get("Retry-After") != "1" {
		t.Errorf("got %d %s %v", response.StatusCode, body, response.Header)
	}
}

func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		name, answer, body string
		status             int
		header             map[string]string
	}{
		{"plain", `{"statusCode":201,"body":"{}","headers":{"ETag":"\"a\"","Retry-After":"5"}}`, "{}", 201,
			map[string]string{"Etag": `"a"`, "Retry-After": "5", "Content-Type": "application/json"}},
		{"renamed", `{"statusCode":401,"body":"{}","headers":{"WWW-Authenticate":"Bearer","Date":"d","Server":"s"}}`, "{}", 401,
			map[string]string{"X-Amzn-Remapped-Www-Authenticate": "Bearer", "X-Amzn-Remapped-Date": "d", "X-Amzn-Remapped-Server": "s", "Www-Authenticate": "", "Server": ""}},
		{"dropped", `{"statusCode":200,"body":"{}","headers":{"Via":"v","Trailer":"t","TE":"u"}}`, "{}", 200,
			map[string]string{"Via": "", "Trailer": "", "Te": ""}},
		{"not modified", `{"statusCode":304,"headers":{"ETag":"\"a\""},"body":""}`, "", 304, map[string]string{"Etag": `"a"`}},
		{"base64 stays", `{"statusCode":200,"body":"e30=","isBase64Encoded":true}`, "e30=", 200, nil},
		{"not JSON", `oops`, `{"code":500}`, 500, nil},
		{"no status", `{"body":"x"}`, `{"code":500}`, 500, nil},
		{"odd status", `{"statusCode":99}`, `{"code":500}`, 500, nil},
		{"null", `null`, `{"code":500}`, 500, nil},
		{"body not text", `{"statusCode":200,"body":{}}`, `{"code":500}`, 500, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			response, body := send(t, start(t, &functions{answer: says(c.answer)}), get("/v1/things/a"))
			if response.StatusCode != c.status || body != c.body {
				t.Errorf("got %d %q, want %d %q", response.StatusCode, body, c.status, c.body)
			}
			for name, want := range c.header {
				if got := response.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestRepeatedHeadersOfAnAnswer(t *testing.T) {
	f := &functions{answer: says(`{"statusCode":200,"headers":{"A":"1","B":"3"},"multiValueHeaders":{"A":["1","2"]},"body":""}`)}
	response, _ := send(t, start(t, f), get("/v1/things/a"))
	if diff := cmp.Diff([]string{"1", "2"}, response.Header["A"]); diff != "" || response.Header.Get("B") != "3" {
		t.Errorf("%s%v", diff, response.Header)
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(context.Context) ([]byte, error)
		status int
		body   string
	}{
		{"crash", func(context.Context) ([]byte, error) { return nil, &runtime.FunctionError{Type: "Runtime.ExitError"} }, 500, `{"code":500}`},
		{"busy", func(context.Context) ([]byte, error) { return nil, runtime.ErrThrottled }, 500, `{"code":500}`},
		{"over 6 MB", func(context.Context) ([]byte, error) { return nil, runtime.ErrTooLarge }, 400, `{"code":400,"large":true}`},
		// Not declared in the test's template, nor is DEFAULT_5XX.
		{"slow", func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, errors.New("late") }, 504, `{"message":"Endpoint request timed out"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			response, body := send(t, start(t, &functions{answer: c.answer}), get("/v1/things/a"))
			if response.StatusCode != c.status || body != c.body {
				t.Errorf("got %d %s, want %d %s", response.StatusCode, body, c.status, c.body)
			}
		})
	}
}
