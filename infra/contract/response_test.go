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

// response is a whole response.
type response struct {
	status int
	header http.Header
	body   []byte
}

// failure is the body of an error.
type failure struct {
	Error struct {
		Message  string `json:"message"`
		Metadata struct {
			RequestID string `json:"request_id"`
			Reason    string `json:"reason"`
			Issues    []struct {
				Path string `json:"path"`
			} `json:"issues"`
		} `json:"metadata"`
	} `json:"error"`
}

// checkEnvelope checks what holds for every response: the description allows it,
// its request id is new and the same in header and body, it contains no secret,
// and a request that was accepted agrees with the description.
func (r response) checkEnvelope(t *testing.T, q request) {
	t.Helper()
	if q.method == http.MethodHead {
		return // a response without a body
	}
	if err := the.spec.CheckResponse(q.operation, r.status, r.header, r.body); err != nil {
		t.Errorf("%s %s returned %d %s\n%v", q.method, q.path, r.status, r.body, err)
	}
	id := r.header.Get("X-Request-Id")
	if r.status >= http.StatusBadRequest && r.failure(t).Error.Metadata.RequestID != id {
		t.Errorf("request id %q in the header, another in the body: %s", id, r.body)
	}
	if _, seen := the.requestIDs.LoadOrStore(id, true); seen && !the.sam {
		t.Errorf("request id %s is not new", id)
	}
	for _, secret := range q.secrets() {
		if strings.Contains(fmt.Sprint(r.header, string(r.body)), secret) {
			t.Errorf("%s %s: the response contains the secret %s", q.method, q.path, secret)
		}
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

// because fails the test unless the response is a 401 with the reason.
func (r response) because(t *testing.T, reason string) {
	t.Helper()
	if got := r.is(t, http.StatusUnauthorized).failure(t).Error.Metadata.Reason; got != reason {
		t.Errorf("got reason %q, want %q", got, reason)
	}
}

// issues returns the paths of the issues of a 400, sorted.
func (r response) issues(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, i := range r.is(t, http.StatusBadRequest).failure(t).Error.Metadata.Issues {
		paths = append(paths, i.Path)
	}
	slices.Sort(paths)
	return paths
}

// refuses fails the test unless the response is a 400 with issues at exactly
// these paths, in any order.
func (r response) refuses(t *testing.T, paths ...string) {
	t.Helper()
	slices.Sort(paths)
	if diff := cmp.Diff(paths, r.issues(t)); diff != "" {
		t.Errorf("issues of %s (-want +got):\n%s", r.body, diff)
	}
}

func (r response) failure(t *testing.T) failure {
	t.Helper()
	return decode[failure](t, r.body)
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

// created fails the test unless the response is a 201, and decodes it.
func (r response) created(t *testing.T) credential {
	t.Helper()
	return decode[struct{ Data credential }](t, r.is(t, http.StatusCreated).body).Data
}

func decode[T any](t *testing.T, body []byte) (into T) {
	t.Helper()
	if err := json.Unmarshal(body, &into); err != nil {
		t.Fatalf("decoding %q: %v", body, err)
	}
	return into
}

// indistinguishable fails the test unless the two responses are the same bytes,
// except for request ids, Date and the limiter's headers.
func indistinguishable(t *testing.T, got, want response) {
	t.Helper()
	if diff := cmp.Diff(want.comparable(), got.comparable()); diff != "" {
		t.Errorf("can be distinguished (-want +got):\n%s", diff)
	}
}

func (r response) comparable() string {
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
