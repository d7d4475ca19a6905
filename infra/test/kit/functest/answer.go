package functest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"signalbox.dev/infra/test/kit/client"
)

// Answer is a function's answer to one event.
type Answer struct {
	Status int
	Header map[string]string
	Body   string
	// Reason is the reason of a 401 or 403. Issues are the paths of a 400's issues.
	Reason string
	Issues []string
	// RequestID is the X-Request-Id. It must be the event's.
	RequestID string
	// Line is the request's log line, Audit its audit line or nil.
	Line, Audit map[string]any

	payload []byte
}

// ReadAnswer reads a handler's answer and log, and checks the parts that every answer
// must have.
func ReadAnswer(t testing.TB, payload []byte, log string) Answer {
	t.Helper()
	a := Answer{payload: payload}
	a.read(t, log)
	a.checkEnvelope(t)
	return a
}

// Text is the whole answer without its request id. Answers that a caller must not distinguish
// have the same text.
func (a Answer) Text() string { return strings.ReplaceAll(string(a.payload), a.RequestID, "") }

// read reads the payload and the log.
func (a *Answer) read(t testing.TB, log string) {
	t.Helper()
	var given struct {
		StatusCode      int
		Headers         map[string]string
		Body            string
		IsBase64Encoded *bool
	}
	d := json.NewDecoder(bytes.NewReader(a.payload))
	d.DisallowUnknownFields()
	if err := d.Decode(&given); err != nil || d.More() || given.IsBase64Encoded == nil || *given.IsBase64Encoded {
		t.Fatalf("no answer of a proxy integration: %s", a.payload)
	}
	a.Status, a.Header, a.Body, a.RequestID = given.StatusCode, given.Headers, given.Body, given.Headers["X-Request-Id"]
	if _, ok := given.Headers["X-Request-Id"]; !ok {
		t.Errorf("no X-Request-Id: %s", a.payload)
	}
	for text := range strings.Lines(log) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("log line is no JSON: %s", text)
		}
		switch {
		case line["msg"] == "request" && a.Line == nil:
			a.Line = line
		case line["msg"] == "audit" && a.Audit == nil:
			a.Audit = line
		default:
			t.Errorf("unexpected log line: %s", text)
		}
	}
	if a.Line == nil || a.Line["status"] != float64(a.Status) || a.Line["request_id"] != a.RequestID {
		t.Errorf("no log line with the answer's status and request id: %s", log)
	}
}

var messages = map[int]string{
	http.StatusBadRequest:          "Invalid request parameters",
	http.StatusUnauthorized:        "Missing Authentication header",
	http.StatusForbidden:           "Only management keys can perform this operation",
	http.StatusNotFound:            "Resource not found",
	http.StatusTooManyRequests:     "Rate limit exceeded",
	http.StatusInternalServerError: "Internal Server Error",
}

// checkEnvelope checks the parts that every answer must have, and reads the envelope of
// an error.
func (a *Answer) checkEnvelope(t testing.TB) {
	t.Helper()
	if isJSON := a.Header["Content-Type"] == "application/json"; isJSON != (a.Body != "") {
		t.Errorf("Content-Type %q of %q", a.Header["Content-Type"], a.Body)
	}
	if a.Status < http.StatusBadRequest {
		return
	}
	var body client.Failure
	d := json.NewDecoder(strings.NewReader(a.Body))
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil {
		t.Fatalf("status %d, error envelope %s: %v", a.Status, a.Body, err)
	}
	a.Reason = body.Error.Metadata.Reason
	for _, issue := range body.Error.Metadata.Issues {
		if issue.Message == "" || issue.Reason == "" {
			t.Errorf("an issue without a reason or a message: %s", a.Body)
		}
		a.Issues = append(a.Issues, issue.Path)
	}
	if e := body.Error; e.Code != a.Status || e.Message != messages[a.Status] || e.Metadata.RequestID != a.RequestID ||
		(a.Reason != "") != (a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden) ||
		(a.Header["WWW-Authenticate"] == "Bearer") != (a.Status == http.StatusUnauthorized) ||
		(len(a.Issues) > 0) != (a.Status == http.StatusBadRequest) || a.Header["Cache-Control"] != "no-store" {
		t.Errorf("error envelope of status %d: %s", a.Status, a.payload)
	}
}
