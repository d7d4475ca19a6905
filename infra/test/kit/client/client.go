// Package client sends the contract's requests to a service over HTTP and reads the
// responses. Only tests import it.
package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/issues"
)

// Client sends requests to one service, from many goroutines at once.
type Client struct {
	Base string // with /api/v1
	HTTP *http.Client
	// Check, if set, checks every response to Request.Do.
	Check func(testing.TB, Request, Response)
}

// New makes a client that keeps that many connections.
func New(base string, connections int) *Client {
	return &Client{Base: base, HTTP: &http.Client{
		Timeout: time.Minute, // longer than Lambda's time-out and the gateway's
		// Servers close an idle connection a little later: a request sent at that
		// instant would get no answer.
		Transport:     &http.Transport{MaxIdleConnsPerHost: connections, IdleConnTimeout: 30 * time.Second, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Request is one request. Each of its methods returns a changed copy.
type Request struct {
	Client       *Client
	Operation    string // the responses of this operation are acceptable
	Method, Path string // the path as in the request line, below the base URL
	Header       http.Header
	Body         string
	Fails        bool // a 500 is expected, on an idle machine too
}

// Call is a request of the operation, without a body. The path is below the base URL.
func (c *Client) Call(operation, method, path string) Request {
	return Request{Client: c, Operation: operation, Method: method, Path: path}
}

// Get reads a sync job.
func (c *Client) Get(job string) Request {
	return c.Call("getSyncJob", http.MethodGet, "/scim/sync-jobs/"+job)
}

// Post creates a credential.
func (c *Client) Post(body string) Request {
	r := c.Call("createByokKey", http.MethodPost, "/byok").With("Content-Type", "application/json")
	r.Body = body
	return r
}

// Delete deletes a file.
func (c *Client) Delete(file string) Request {
	return c.Call("deleteFile", http.MethodDelete, "/files/"+file)
}

// Unrouted is a request of no operation. Its response must be the 404 of an operation
// without own headers.
func (c *Client) Unrouted(method, path string) Request {
	return c.Call("getSyncJob", method, path)
}

// At sends the request with another client.
func (r Request) At(c *Client) Request {
	r.Client = c
	return r
}

// Query adds a query, not escaped.
func (r Request) Query(query string) Request {
	r.Path += "?" + query
	return r
}

// In scopes a delete to a workspace.
func (r Request) In(workspace string) Request { return r.Query("workspace_id=" + workspace) }

// As sends an API key.
func (r Request) As(token string) Request { return r.With("Authorization", "Bearer "+token) }

// Idempotent sends an idempotency key.
func (r Request) Idempotent(key string) Request { return r.With("Idempotency-Key", key) }

// With sends a header, once for each value; without values it is omitted.
func (r Request) With(name string, values ...string) Request {
	r.Header = r.Header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	delete(r.Header, name)
	if len(values) > 0 {
		r.Header[name] = values
	}
	return r
}

// Do sends the request and runs the client's Check on the response. On a busy machine it
// repeats a request that met a time-out.
func (r Request) Do(t testing.TB) Response {
	t.Helper()
	got, err := r.Send(t.Context())
	if (err != nil || got.Status == http.StatusInternalServerError && !r.Fails) && kit.Busy(t, fmt.Sprintf("%s %s: %d", r.Method, r.Operation, got.Status)) {
		got, err = r.Send(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.Client.Check != nil {
		r.Client.Check(t, r, got)
	}
	return got
}

// Send sends the request and reads the whole response.
func (r Request) Send(ctx context.Context) (Response, error) {
	target, err := url.Parse(r.Client.Base)
	if err != nil {
		return Response{}, err
	}
	// An opaque target goes into the request line unchanged.
	target.Opaque = target.Path + r.Path
	q := &http.Request{
		Method: r.Method, URL: target, Host: target.Host,
		Header: r.Header.Clone(), Body: io.NopCloser(strings.NewReader(r.Body)), ContentLength: int64(len(r.Body)),
	}
	if r.Header == nil {
		q.Header = http.Header{}
	}
	if r.Body == "" {
		q.Body = http.NoBody
	}
	res, err := r.Client.HTTP.Do(q.WithContext(ctx))
	if err != nil {
		return Response{}, fmt.Errorf("sending %s %s: %w", r.Method, r.Path, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return Response{}, fmt.Errorf("reading the response to %s %s: %w", r.Method, r.Path, err)
	}
	return Response{res.StatusCode, res.Header, body}, nil
}

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
