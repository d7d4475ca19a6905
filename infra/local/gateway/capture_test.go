package gateway_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"signalbox.dev/infra/testkit"
)

// Each function's golden test sends one event that was captured here.
var update = flag.Bool("update", false, "capture the events of functions/*/testdata anew")

// TestCapturedEvents sends every functions/*/testdata/*.request to the gateway
// of the real template and compares the event that the function would get with
// the captured one beside it. With -update it captures it.
func TestCapturedEvents(t *testing.T) {
	const root = "../../.."
	requests, err := filepath.Glob(filepath.Join(root, "functions", "*", "testdata", "*.request"))
	if err != nil || len(requests) == 0 {
		t.Fatalf("no requests to capture: %v", err)
	}
	f := &functions{answer: fixed(ok)}
	address := startFrom(t, filepath.Join(root, "template.yaml"), f)
	for _, path := range requests {
		t.Run(filepath.Base(path), func(t *testing.T) {
			request, err := os.ReadFile(path) //nolint:gosec // one of our own test's files
			testkit.Must(t, err)
			f.last = nil
			send(t, address, wire(string(request)))
			path := strings.TrimSuffix(path, ".request") + ".event.json"
			got := normalized(t, f.last, body(string(request)))
			if *update {
				testkit.Must(t, os.WriteFile(path, got, 0o600))
			}
			if want, err := os.ReadFile(path); err != nil || !bytes.Equal(want, got) { //nolint:gosec // the same
				t.Errorf("%s, %v, differs from the gateway's event; -update captures it anew:\n%s", path, err, got)
			}
		})
	}
}

// wire returns the request as sent: the file has no Content-Length, and its lines end
// without carriage returns.
func wire(text string) string {
	head, _, _ := strings.Cut(text, "\n\n")
	body := body(text)
	if body != "" {
		head += fmt.Sprintf("\nContent-Length: %d", len(body))
	}
	return strings.ReplaceAll(strings.TrimSuffix(head, "\n"), "\n", "\r\n") + "\r\n\r\n" + body
}

// body returns the request's body.
func body(text string) string {
	_, body, _ := strings.Cut(text, "\n\n")
	return strings.TrimSuffix(body, "\n")
}

// normalized returns the event with fixed values for varying members. The body and its
// length have names: they are those of the request.
func normalized(t *testing.T, event []byte, body string) []byte {
	t.Helper()
	var e map[string]any
	if err := json.Unmarshal(event, &e); err != nil {
		t.Fatalf("no event: %q", event)
	}
	context := e["requestContext"].(map[string]any)
	for member, value := range map[string]any{
		"requestId":         "7a6f8e5c-0000-4000-8000-000000000000",
		"extendedRequestId": "AAAAAAAAAAAAAA=",
		"requestTime":       "21/Nov/2026:12:00:00 +0000",
		"requestTimeEpoch":  1795262400000,
	} {
		if context[member] == nil {
			t.Errorf("the event has no %s", member)
		}
		context[member] = value
	}
	fixed := map[string]string{"X-Amzn-Trace-Id": "Root=1-6b015a40-000000000000000000000000"}
	if body != "" {
		length := strconv.Itoa(len(body))
		if e["body"] != body || e["headers"].(map[string]any)["Content-Length"] != length {
			t.Errorf("the event has the body %q with headers %v", e["body"], e["headers"])
		}
		e["body"], fixed["Content-Length"] = "$BODY", "$LENGTH"
	}
	for name, value := range fixed {
		e["headers"].(map[string]any)[name] = value
		e["multiValueHeaders"].(map[string]any)[name] = []string{value}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	testkit.Must(t, encoder.Encode(e))
	return text.Bytes()
}
