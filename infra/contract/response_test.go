package contract_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// response is what came back, whole.
type response struct {
	status int
	header http.Header
	body   []byte
}

// issue is one entry of error.metadata.issues.
type issue struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

type failure struct {
	Error struct {
		Message  string `json:"message"`
		Metadata struct {
			RequestID string  `json:"request_id"`
			Reason    string  `json:"reason"`
			Issues    []issue `json:"issues"`
		} `json:"metadata"`
	} `json:"error"`
}

// checkEnvelope checks what holds of every response: the description allows
// it, the request id is the same wherever it stands and like no other's, no
// secret came back, and what was accepted is acceptable by the description.
func (r response) checkEnvelope(t *testing.T, q request) {
	t.Helper()
	if q.method == http.MethodHead {
		return // HTTP itself takes the body away
	}
	if err := the.spec.CheckResponse(q.operation, r.status, r.header, r.body); err != nil {
		t.Errorf("%s %s answered %d %s\n%v", q.method, q.path, r.status, r.body, err)
	}
	id := r.header.Get("X-Request-Id")
	if r.status >= http.StatusBadRequest && r.failure(t).Error.Metadata.RequestID != id {
		t.Errorf("request id %q in the header, other in the body: %s", id, r.body)
	}
	if _, seen := the.requestIDs.LoadOrStore(id, true); seen && !the.sam {
		t.Errorf("request id %s came twice", id)
	}
	if s, found := reveals([]byte(fmt.Sprint(r.header, string(r.body))), q.secrets()); found {
		t.Errorf("%s %s answered with the secret %s", q.method, q.path, s)
	}
	if r.status == http.StatusCreated {
		if err := the.spec.CheckRequest(q.operation, []byte(q.body)); err != nil {
			t.Errorf("accepted against the description: %v", err)
		}
	}
}

// is fails the test unless the response has the status.
func (r response) is(t *testing.T, status int) response {
	t.Helper()
	if r.status != status {
		t.Fatalf("got %d %s, want %d", r.status, r.body, status)
	}
	return r
}

// because fails the test unless the response is a 401 for the reason.
func (r response) because(t *testing.T, reason string) {
	t.Helper()
	if got := r.is(t, http.StatusUnauthorized).failure(t).Error.Metadata.Reason; got != reason {
		t.Errorf("got reason %q, want %q", got, reason)
	}
}

// refuses fails the test unless the response is a 400 with issues at exactly
// these paths, in any order. It returns the messages.
func (r response) refuses(t *testing.T, paths ...string) []string {
	t.Helper()
	var got, messages []string
	for _, i := range r.is(t, http.StatusBadRequest).failure(t).Error.Metadata.Issues {
		got = append(got, i.Path)
		messages = append(messages, i.Message)
	}
	slices.Sort(got)
	slices.Sort(paths)
	if diff := cmp.Diff(paths, got); diff != "" {
		t.Errorf("issues of %s (-want +got):\n%s", r.body, diff)
	}
	return messages
}

func (r response) failure(t *testing.T) failure {
	t.Helper()
	var f failure
	decode(t, r.body, &f)
	return f
}

// credential is the part of a created credential that tests compare.
type credential struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Provider  string    `json:"provider"`
	Label     string    `json:"label"`
	Workspace string    `json:"workspace_id"`
	CreatedAt time.Time `json:"created_at"`
	Disabled  bool      `json:"disabled"`
	ByokOnly  bool      `json:"is_byok_only"`
	Fallback  bool      `json:"is_fallback"`
	Required  bool      `json:"is_required"`
	Hashes    []string  `json:"allowed_api_key_hashes"`
	Models    []string  `json:"allowed_models"`
	Users     []string  `json:"allowed_user_ids"`
	SortOrder int       `json:"sort_order"`
}

// created fails the test unless the response is a 201, and reads it.
func (r response) created(t *testing.T) credential {
	t.Helper()
	var c struct{ Data credential }
	decode(t, r.is(t, http.StatusCreated).body, &c)
	return c.Data
}

func decode(t *testing.T, body []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("decoding %q: %v", body, err)
	}
}

// bare is the response as text, less what may differ between two answers that
// must not be told apart: ids of the request, Date and the limiter's headers.
func (r response) bare() string {
	var lines []string
	for name, values := range r.header {
		switch name {
		case "X-Request-Id", "X-Amzn-Requestid", "X-Amz-Apigw-Id", "X-Amzn-Trace-Id", "Date",
			"Ratelimit", "Ratelimit-Policy", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset":
		default:
			lines = append(lines, fmt.Sprintf("%s: %q", name, values))
		}
	}
	slices.Sort(lines)
	body := strings.ReplaceAll(string(r.body), r.header.Get("X-Request-Id"), "<request id>")
	return fmt.Sprintf("%d\n%s\n\n%s", r.status, strings.Join(lines, "\n"), body)
}

// indistinguishable fails the test if the two responses can be told apart.
func indistinguishable(t *testing.T, got, want response) {
	t.Helper()
	if diff := cmp.Diff(want.bare(), got.bare()); diff != "" {
		t.Errorf("can be told apart (-want +got):\n%s", diff)
	}
}
