// Package caller sends requests of the contract and reads their answers, as a
// strict client does: an answer that is not in the shape that the
// contract gives it is an error of its own.
package caller

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	// patience bounds a request: Lambda's own time-out and the gateway's are shorter.
	patience = time.Minute
	// idle bounds how long an unused connection is kept. A server closes
	// it a little later: a request that is sent at that instant gets no answer.
	idle = 30 * time.Second
)

// Client sends requests to one service, from many goroutines at once.
type Client struct {
	// Base gives the base URL.
	Base string
	http *http.Client
}

// New makes a client of the service at the base URL that keeps as many
// connections.
func New(base string, connections int) *Client {
	return &Client{Base: base, http: &http.Client{
		Timeout:   patience,
		Transport: &http.Transport{MaxIdleConnsPerHost: connections, IdleConnTimeout: idle, DisableCompression: true},
	}}
}

// Answer is what came of a request.
type Answer struct {
	// Status is 0 where no answer came: the request may have had its effect.
	Status int
	Header http.Header
	Body   []byte
}

// Uncertain reports whether the request may have had its effect or not.
func (a Answer) Uncertain() bool {
	return a.Status == 0 || a.Status >= http.StatusInternalServerError
}

// Credential is the part of a created credential that is looked at.
type Credential struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Provider  string `json:"provider"`
	Workspace string `json:"workspace_id"`
	SortOrder int64  `json:"sort_order"`
}

// Credential is the content of a 201.
func (a Answer) Credential() (Credential, error) {
	var body struct{ Data Credential }
	err := json.Unmarshal(a.Body, &body)
	return body.Data, err
}

// Replayed reports whether a 201 repeats an earlier one.
func (a Answer) Replayed() bool { return a.Header.Get("Idempotent-Replayed") != "" }

// Issues are the paths of what is wrong with a request, of a 400.
func (a Answer) Issues() []string {
	var body failure
	if json.Unmarshal(a.Body, &body) != nil {
		return nil
	}
	paths := make([]string, len(body.Error.Metadata.Issues))
	for i, issue := range body.Error.Metadata.Issues {
		paths[i] = issue.Path
	}
	return paths
}

type failure struct {
	Error struct {
		Code     int    `json:"code"`
		Message  string `json:"message"`
		Metadata struct {
			RequestID string `json:"request_id"`
			Issues    []struct {
				Path string `json:"path"`
			} `json:"issues"`
		} `json:"metadata"`
	} `json:"error"`
}

// Create asks for a credential, under an idempotency key unless that is empty.
func (c *Client) Create(ctx context.Context, apiKey, idempotencyKey string, body any) (Answer, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return Answer{}, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if idempotencyKey != "" {
		header.Set("Idempotency-Key", idempotencyKey)
	}
	return c.send(ctx, http.MethodPost, "/byok", apiKey, header, text)
}

// Delete asks for a file of the workspace to be deleted.
func (c *Client) Delete(ctx context.Context, apiKey, workspace, file string) (Answer, error) {
	path := "/files/" + file + "?workspace_id=" + url.QueryEscape(workspace)
	return c.send(ctx, http.MethodDelete, path, apiKey, http.Header{}, nil)
}

// Job asks how a sync job is doing.
func (c *Client) Job(ctx context.Context, apiKey, job string) (Answer, error) {
	return c.send(ctx, http.MethodGet, "/scim/sync-jobs/"+job, apiKey, http.Header{}, nil)
}

// send sends the request. That no answer came is no error; its error says what
// is wrong with the answer that did.
func (c *Client) send(ctx context.Context, method, path, apiKey string, header http.Header, body []byte) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.Base+path, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	request.Header = header
	request.Header.Set("Authorization", "Bearer "+apiKey)
	response, err := c.http.Do(request)
	if err != nil {
		return Answer{}, nil //nolint:nilerr // killed on the way: that is what is being tried
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{}, nil //nolint:nilerr // cut off on the way
	}
	a := Answer{Status: response.StatusCode, Header: response.Header, Body: text}
	if err := a.check(); err != nil {
		return a, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return a, nil
}

// check holds every answer to the envelope.
func (a Answer) check() error {
	id := a.Header.Get("X-Request-Id")
	if id == "" {
		return fmt.Errorf("%d without a request id", a.Status)
	}
	if a.Status < http.StatusBadRequest {
		return nil
	}
	var f failure
	if err := json.Unmarshal(a.Body, &f); err != nil {
		return fmt.Errorf("%d outside the envelope: %q", a.Status, a.Body)
	}
	if f.Error.Code != a.Status || f.Error.Message == "" || f.Error.Metadata.RequestID != id {
		return fmt.Errorf("%d in a wrong envelope: %q", a.Status, a.Body)
	}
	return nil
}
