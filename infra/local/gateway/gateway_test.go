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

// start serves the project's own template and returns the address.
func start(t *testing.T, f gateway.Functions) string {
	t.Helper()
	loaded, err := template.Load("../../../template.yaml", nil)
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

// is checks a response of the gateway's own: the template's envelope, with AWS's error type.
func is(t *testing.T, what string, response *http.Response, body string, status int, errorType string) {
	t.Helper()
	want := fmt.Sprintf(`"code":%d,`, status)
	if response.StatusCode != status || !strings.Contains(body, want) || !strings.Contains(body, response.Header.Get("x-amzn-RequestId")) || response.Header.Get("x-amzn-ErrorType") != errorType {
		t.Errorf("%s: %d %s %v, want %d %s", what, response.StatusCode, body, response.Header, status, errorType)
	}
}

// What the gateway refuses reaches no function.
func TestRefusals(t *testing.T) {
	const post = "POST /api/v1/byok HTTP/1.1\r\nHost: a\r\n"
	f := new(functions)
	address := start(t, f)
	large := strings.Repeat("x", 3*gateway.MaxBody)
	for _, c := range []struct {
		name, request string
		status        int
		errorType     string
	}{
		{"a body over 10 MB", post + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(large), large), 400, "RequestTooLargeException"},
		{"a broken chunk", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "BadRequestException"},
		{"an unknown route", "GET /api/v1/nothing HTTP/1.1\r\nHost: a\r\n\r\n", 404, "MissingAuthenticationTokenException"},
		{"an unknown route with a key", "GET /api/v1/nothing HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\n\r\n", 404, "IncompleteSignatureException"},
	} {
		response, body := send(t, address, c.request)
		is(t, c.name, response, body, c.status, c.errorType)
	}
	if f.calls != 0 {
		t.Errorf("the function was invoked %d times", f.calls)
	}
}

// If a function does not answer, or with no proxy response, the gateway does.
func TestFaultsOfFunctions(t *testing.T) {
	for name, f := range map[string]*functions{
		"no JSON":           {answer: "oops"},
		"no proxy response": {answer: `{"statusCode":600}`},
		"a crash":           {err: &runtime.FunctionError{Type: "Runtime.ExitError"}},
		"a throttle":        {err: runtime.ErrThrottled},
	} {
		response, body := send(t, start(t, f), "GET /api/v1/scim/sync-jobs/a HTTP/1.1\r\nHost: local:3000\r\n\r\n")
		is(t, name, response, body, 500, "InternalServerErrorException")
		for _, part := range []string{`"sourceIp":"127.0.0.1"`, `"requestId":"` + response.Header.Get("x-amzn-RequestId") + `"`} { // for logs
			if !strings.Contains(string(f.event), part) {
				t.Errorf("%s: want %s in the event %s", name, part, f.event)
			}
		}
	}
	response, body := send(t, start(t, &functions{err: runtime.ErrTooLarge}), "GET /api/v1/scim/sync-jobs/a HTTP/1.1\r\nHost: a\r\n\r\n")
	is(t, "an event over 6 MB", response, body, 400, "RequestTooLargeException")
}
