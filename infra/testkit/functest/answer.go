package functest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit/faults"
)

// Answer is what came of one event.
type Answer struct {
	Status int
	Header map[string]string
	Body   string
	// Calls are the attempts of calls that the request made.
	Calls []faults.Call
	// RequestID is that of the event.
	RequestID string
	// Line is the request's log line, Audit its audit line or nil.
	Line, Audit map[string]any

	payload []byte
	log     string
}

func (a *Answer) read(t testing.TB, log []byte) {
	t.Helper()
	var given struct {
		StatusCode      int
		Headers         map[string]string
		Body            string
		IsBase64Encoded *bool
	}
	if err := json.Unmarshal(a.payload, &given); err != nil || given.IsBase64Encoded == nil || *given.IsBase64Encoded {
		t.Fatalf("no answer of a proxy integration: %s", a.payload)
	}
	a.Status, a.Header, a.Body = given.StatusCode, given.Headers, given.Body
	a.log = string(log)
	for text := range strings.Lines(a.log) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("log line is no JSON: %s", text)
		}
		switch line["msg"] {
		case "request":
			a.Line = line
		case "audit":
			a.Audit = line
		default:
			t.Errorf("unexpected log line: %s", text)
		}
	}
	if a.Line == nil || a.Line["status"] != float64(a.Status) || a.Line["request_id"] != a.RequestID {
		t.Errorf("no log line of its own: %s", a.log)
	}
}

// messages are the texts of the spec.
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

// checkEnvelope checks what every answer owes.
func (a *Answer) checkEnvelope(t testing.TB) {
	t.Helper()
	if a.Header["X-Request-Id"] != a.RequestID {
		t.Errorf("X-Request-Id %q, want %q", a.Header["X-Request-Id"], a.RequestID)
	}
	if want := map[bool]string{true: "application/json"}[a.Body != ""]; a.Header["Content-Type"] != want {
		t.Errorf("Content-Type %q, want %q", a.Header["Content-Type"], want)
	}
	if a.Status < http.StatusBadRequest {
		return
	}
	if a.Header["Cache-Control"] != "no-store" {
		t.Errorf("Cache-Control %q of an error", a.Header["Cache-Control"])
	}
	var body struct {
		Error struct {
			Code     int
			Message  string
			Metadata map[string]any
		}
	}
	a.Decode(t, &body)
	metadata := body.Error.Metadata
	want := map[string]any{"error": map[string]any{
		"code": float64(a.Status), "message": messages()[a.Status], "metadata": map[string]any{"request_id": a.RequestID},
	}}
	owed := want["error"].(map[string]any)["metadata"].(map[string]any) //nolint:errcheck // just written
	for member, status := range map[string]int{"reason": http.StatusUnauthorized, "issues": http.StatusBadRequest} {
		if a.Status == status {
			owed[member] = metadata[member]
		}
	}
	var got map[string]any
	a.Decode(t, &got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error envelope (-want +got):\n%s", diff)
	}
	if a.Status == http.StatusUnauthorized && (metadata["reason"] == nil || a.Header["WWW-Authenticate"] != "Bearer") {
		t.Errorf("a 401 without reason or challenge: %s", a.payload)
	}
	if a.Status == http.StatusBadRequest && len(a.Issues(t)) == 0 {
		t.Errorf("a 400 without issues: %s", a.Body)
	}
}

// Decode reads the body.
func (a Answer) Decode(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Body), into); err != nil {
		t.Fatalf("status %d, body is no JSON: %q", a.Status, a.Body)
	}
}

// Reason is the reason of a 401.
func (a Answer) Reason(t testing.TB) string {
	t.Helper()
	var body struct {
		Error struct{ Metadata struct{ Reason string } }
	}
	a.Decode(t, &body)
	return body.Error.Metadata.Reason
}

// Issues are the paths of the issues of a 400.
func (a Answer) Issues(t testing.TB) []string {
	t.Helper()
	var body struct {
		Error struct {
			Metadata struct {
				Issues []struct{ Path, Message *string }
			}
		}
	}
	a.Decode(t, &body)
	var paths []string
	for _, issue := range body.Error.Metadata.Issues {
		if issue.Path == nil || issue.Message == nil || *issue.Message == "" {
			t.Fatalf("an issue without a path or a message: %s", a.Body)
		}
		paths = append(paths, *issue.Path)
	}
	return paths
}

// HasMembers checks that the object in the body has exactly these members.
func HasMembers(t testing.TB, object map[string]any, members ...string) {
	t.Helper()
	got := slices.Sorted(maps.Keys(object))
	slices.Sort(members)
	if diff := cmp.Diff(members, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}
