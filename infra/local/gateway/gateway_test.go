package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"signalbox.dev/infra/local/gateway"
	"signalbox.dev/infra/local/runtime"
	"signalbox.dev/infra/local/template"
	"signalbox.dev/infra/test/kit"
)

// functions is a fake with one answer.
type functions struct {
	answer string
	err    error
	calls  int
	event  []byte
}

func (f *functions) Invoke(_ context.Context, _ string, event []byte) ([]byte, error) {
	f.calls++
	f.event = event
	return []byte(f.answer), f.err
}

// start serves the test template and returns the address.
func start(t *testing.T, f gateway.Functions) string {
	t.Helper()
	loaded, err := template.Load("testdata/template.yaml", nil)
	kit.Must(t, err)
	api, err := loaded.API()
	kit.Must(t, err)
	g := gateway.New(gateway.Config{API: api, Functions: f, Log: slog.New(slog.DiscardHandler)})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	kit.Must(t, err)
	server := g.Server()
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// send writes a request unchanged and reads the response.
func send(t *testing.T, address, text string) (*http.Response, string) {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	kit.Must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	if _, err := io.WriteString(connection, text); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(text, " ")
	response, err := http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: method})
	kit.Must(t, err)
	body, err := io.ReadAll(response.Body)
	kit.Must(t, err)
	return response, string(body)
}

func TestRefusals(t *testing.T) {
	const thing = "POST /v1/things HTTP/1.1\r\nHost: a\r\n"
	f := &functions{answer: `{"statusCode":200,"body":"ok"}`}
	address := start(t, f)
	large := strings.Repeat("x", 3*gateway.MaxBody)
	for _, c := range []struct {
		name, request string
		status        int
		body          string
		errorType     string
	}{
		{"body over 10 MB", thing + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(large), large), 400, `{"code":400,"large":true}`, "RequestTooLargeException"},
		{"broken chunk", thing + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, `{"code":400,"body":true}`, "BadRequestException"},
		{"unknown route", "GET /v1/nothing HTTP/1.1\r\nHost: a\r\n\r\n", 404, `{"code":404}`, "MissingAuthenticationTokenException"},
		{"unknown route with a key", "GET /v1/nothing HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\n\r\n", 404, `{"code":404}`, "IncompleteSignatureException"},
	} {
		response, body := send(t, address, c.request)
		if response.StatusCode != c.status || body != c.body || response.Header.Get("x-amzn-ErrorType") != c.errorType {
			t.Errorf("%s: got %d %s %v", c.name, response.StatusCode, body, response.Header)
		}
	}
	if f.calls != 0 {
		t.Errorf("the function was invoked %d times", f.calls)
	}
}

// A function's answer becomes the response. If it is not a proxy response, the gateway sends
// its own.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer string
		err    error
		body   string
		status int
		header map[string]string
	}{
		{"plain", `{"statusCode":201,"body":"{}","headers":{"ETag":"\"a\"","Retry-After":"5"}}`, nil, "{}", 201,
			map[string]string{"Etag": `"a"`, "Retry-After": "5", "Content-Type": "application/json", "X-Amzn-Errortype": ""}},
		{"renamed", `{"statusCode":401,"body":"{}","headers":{"WWW-Authenticate":"Bearer"}}`, nil, "{}", 401,
			map[string]string{"X-Amzn-Remapped-Www-Authenticate": "Bearer", "Www-Authenticate": ""}},
		{"not modified", `{"statusCode":304,"headers":{"ETag":"\"a\""},"body":""}`, nil, "", 304, map[string]string{"Etag": `"a"`}},
		{"base64 stays", `{"statusCode":200,"body":"e30=","isBase64Encoded":true}`, nil, "e30=", 200, nil},
		{"not JSON", `oops`, nil, `{"code":500}`, 500, map[string]string{"X-Amzn-Errortype": "InternalServerErrorException"}},
		{"no status", `{"body":"x"}`, nil, `{"code":500}`, 500, nil},
		{"odd status", `{"statusCode":600}`, nil, `{"code":500}`, 500, nil},
		{"body not text", `{"statusCode":200,"body":{}}`, nil, `{"code":500}`, 500, nil},
		{"crash", "", &runtime.FunctionError{Type: "Runtime.ExitError"}, `{"code":500}`, 500, nil},
		{"busy", "", runtime.ErrThrottled, `{"code":500}`, 500, nil},
		{"over 6 MB", "", runtime.ErrTooLarge, `{"code":400,"large":true}`, 400, nil},
	} {
		f := &functions{answer: c.answer, err: c.err}
		response, body := send(t, start(t, f), "GET /v1/things/a HTTP/1.1\r\nHost: local:3000\r\n\r\n")
		for _, part := range []string{`"sourceIp":"127.0.0.1"`, `"requestId":"` + response.Header.Get("x-amzn-RequestId") + `"`} { // for logs
			if !strings.Contains(string(f.event), part) {
				t.Errorf("%s: want %s in the event %s", c.name, part, f.event)
			}
		}
		if response.StatusCode != c.status || body != c.body {
			t.Errorf("%s: got %d %q, want %d %q", c.name, response.StatusCode, body, c.status, c.body)
		}
		for name, want := range c.header {
			if got := strings.Join(response.Header[name], " "); got != want {
				t.Errorf("%s: %s: %q, want %q", c.name, name, got, want)
			}
		}
	}
}
