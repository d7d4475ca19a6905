package functest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/client"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
)

// Answer is a function's answer to one event.
type Answer struct {
	Status int
	Header map[string]string
	Body   string
	// Reason is that of a 401; Issues are the paths of the issues of a 400.
	Reason string
	Issues []string
	// Calls are the attempts of calls that the request made.
	Calls []faults.Call
	// RequestID is that of the X-Request-Id, which is the event's.
	RequestID string
	// Line is the request's log line, Audit its audit line or nil.
	Line, Audit map[string]any

	payload []byte
	log     string
}

// Handle sends the event to an operation on fakes.
func Handle(t testing.TB, keys *auth.Verifier, op api.Operation, e Event) Answer {
	t.Helper()
	var log bytes.Buffer
	payload, err := api.Handler(keys, slog.New(slog.NewJSONHandler(&log, nil)), op).Invoke(t.Context(), e.Payload())
	testkit.Must(t, err)
	return ReadAnswer(t, payload, log.String())
}

// ReadAnswer reads a handler's answer and log, and checks the parts that every answer
// must have.
func ReadAnswer(t testing.TB, payload []byte, log string) Answer {
	t.Helper()
	a := Answer{payload: payload, log: log}
	a.read(t)
	a.checkEnvelope(t)
	return a
}

// read reads the payload and the log.
func (a *Answer) read(t testing.TB) {
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
	for text := range strings.Lines(a.log) {
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
		t.Errorf("no log line of its own: %s", a.log)
	}
}

// messages returns the texts of the contract's errors.
func messages() map[int]string {
	return map[int]string{
		http.StatusBadRequest:          "Invalid request parameters",
		http.StatusUnauthorized:        "Missing Authentication header",
		http.StatusForbidden:           "Only management keys can perform this operation",
		http.StatusNotFound:            "Resource not found",
		http.StatusTooManyRequests:     "Rate limit exceeded",
		http.StatusInternalServerError: "Internal Server Error",
	}
}

// checkEnvelope checks the parts that every answer must have, and reads the envelope of
// an error.
func (a *Answer) checkEnvelope(t testing.TB) {
	t.Helper()
	if want := map[bool]string{true: "application/json"}[a.Body != ""]; a.Header["Content-Type"] != want {
		t.Errorf("Content-Type %q, want %q", a.Header["Content-Type"], want)
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
		if issue.Message == "" {
			t.Errorf("an issue without a message: %s", a.Body)
		}
		a.Issues = append(a.Issues, issue.Path)
	}
	if e := body.Error; e.Code != a.Status || e.Message != messages()[a.Status] || e.Metadata.RequestID != a.RequestID ||
		(a.Reason != "") != (a.Status == http.StatusUnauthorized) || (a.Header["WWW-Authenticate"] == "Bearer") != (a.Reason != "") ||
		(len(a.Issues) > 0) != (a.Status == http.StatusBadRequest) || a.Header["Cache-Control"] != "no-store" {
		t.Errorf("error envelope of status %d: %s", a.Status, a.payload)
	}
}

// Decode reads the body.
func (a Answer) Decode(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Body), into); err != nil {
		t.Fatalf("status %d, body is no JSON: %q", a.Status, a.Body)
	}
}

// Is checks the status.
func (a Answer) Is(t testing.TB, status int) bool {
	t.Helper()
	if a.Status != status {
		t.Errorf("status %d, want %d: %s", a.Status, status, a.Body)
	}
	return a.Status == status
}

// Refused checks that the answer is a 401 for that reason.
func (a Answer) Refused(t testing.TB, reason string) {
	t.Helper()
	if a.Is(t, http.StatusUnauthorized) && a.Reason != reason {
		t.Errorf("reason %s, want %s", a.Reason, reason)
	}
}

// HasMembers checks that the object in the body has exactly these members.
func HasMembers(t testing.TB, object map[string]any, members ...string) {
	t.Helper()
	slices.Sort(members)
	if diff := cmp.Diff(members, slices.Sorted(maps.Keys(object))); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

// Indistinguishable checks that a caller cannot distinguish answers. The events
// must have one request id.
type Indistinguishable struct {
	bytes string
	calls map[string][]string
}

// Check compares the answer with the earlier ones, except for the limiter's headers.
// Answers of one group must also have made the same calls.
func (i *Indistinguishable) Check(t testing.TB, group string, a Answer) {
	t.Helper()
	header := maps.Clone(a.Header)
	maps.DeleteFunc(header, func(name, _ string) bool { return strings.Contains(name, "RateLimit") })
	bytes, _ := json.Marshal([]any{a.Status, header, a.Body}) // maps encode in one order
	if i.bytes == "" {
		i.bytes, i.calls = string(bytes), map[string][]string{}
	}
	if i.bytes != string(bytes) {
		t.Errorf("differs from the others:\n%s\n%s", bytes, i.bytes)
	}
	calls := callNames(a)
	if known, ok := i.calls[group]; !ok {
		i.calls[group] = calls
	} else if !slices.Equal(known, calls) {
		t.Errorf("made the calls %v, others %v", calls, known)
	}
}

// callNames returns the operations that the request asked for, with the kinds of their
// items, sorted.
func callNames(a Answer) []string {
	var names []string
	for _, c := range a.Calls {
		if c.Attempt == 1 {
			names = append(names, fmt.Sprint(c.Operation, kind.FindAllString(c.Item, -1)))
		}
	}
	slices.Sort(names)
	return names
}

// kind matches the first part of an item's key, such as "key#".
var kind = regexp.MustCompile(`[a-z]+#`)

// checkCalls checks that every read is strongly consistent and every write conditional:
// the store settles races.
func checkCalls(t testing.TB, calls []faults.Call) {
	t.Helper()
	for _, c := range calls {
		if !isConsistentOrConditional(c) {
			t.Errorf("%s: an eventually consistent read, or an unconditional write: %v", c.Operation, c.Input)
		}
	}
}

func isConsistentOrConditional(c faults.Call) bool {
	input, _ := json.Marshal(c.Input)
	consistent := strings.Count(string(input), `"ConsistentRead":true`)
	conditional := strings.Count(string(input), `"ConditionExpression":`)
	switch c.Operation {
	case "GetItem", "BatchGetItem", "Query": // of one table
		return consistent == 1
	case "PutItem", "UpdateItem":
		return conditional == 1
	case "TransactWriteItems":
		items, _ := c.Input["TransactItems"].([]any)
		return len(items) > 0 && conditional == len(items)
	case "DeleteObject":
		return c.Header.Get("If-Match") == "*"
	case "DeleteObjects", "ListObjectVersions", "GenerateDataKey": // by version id; reads are consistent; no effect
		return true
	default:
		return false
	}
}
