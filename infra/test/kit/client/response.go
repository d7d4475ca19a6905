package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/shared/issues"
)

// Response is a whole response. If none came, its status is 0.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Failure is the body of an error.
type Failure struct {
	Error struct {
		Code     int    `json:"code"`
		Message  string `json:"message"`
		Metadata struct {
			RequestID string         `json:"request_id"`
			Reason    string         `json:"reason"`
			Issues    []issues.Issue `json:"issues"`
		} `json:"metadata"`
	} `json:"error"`
}

// Credential has the members of a created credential that tests read.
type Credential struct {
	ID        string `json:"id"`
	Label     string `json:"label"`
	SortOrder int64  `json:"sort_order"`
}

// Failure decodes an error, which has the response's status and request id.
func (r Response) Failure() (Failure, error) {
	var f Failure
	err := json.Unmarshal(r.Body, &f)
	if id := r.Header.Get("X-Request-Id"); err != nil || f.Error.Code != r.Status || f.Error.Message == "" || id == "" || f.Error.Metadata.RequestID != id {
		return f, fmt.Errorf("%d of the request %q is not in the envelope: %q", r.Status, id, r.Body)
	}
	return f, nil
}

// Issues returns the paths of the issues of a 400, sorted.
func (r Response) Issues() []string {
	var paths []string
	f, _ := r.Failure() // another response has none
	for _, i := range f.Error.Metadata.Issues {
		paths = append(paths, i.Path)
	}
	slices.Sort(paths)
	return paths
}

// Is fails the test unless the response has the status.
func (r Response) Is(t testing.TB, status int) Response {
	t.Helper()
	if r.Status != status {
		t.Fatalf("got %d %s, want %d", r.Status, r.Body, status)
	}
	return r
}

// Refuses fails the test unless the response is a 400 with issues at exactly
// these paths, in any order.
func (r Response) Refuses(t testing.TB, paths ...string) {
	t.Helper()
	slices.Sort(paths)
	if diff := cmp.Diff(paths, r.Is(t, http.StatusBadRequest).Issues()); diff != "" {
		t.Errorf("issues of %s (-want +got):\n%s", r.Body, diff)
	}
}

// Created fails the test unless the response is a 201, and decodes it.
func (r Response) Created(t testing.TB) Credential {
	t.Helper()
	var body struct{ Data Credential }
	if err := json.Unmarshal(r.Is(t, http.StatusCreated).Body, &body); err != nil {
		t.Fatalf("decoding %q: %v", r.Body, err)
	}
	return body.Data
}
