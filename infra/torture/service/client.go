package service

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

// Client sends requests to one service, from many goroutines at once. It is
// strict: a response in another shape than the contract's is an error.
type Client struct {
	base string
	http *http.Client
}

// NewClient makes a client that keeps that many connections.
func NewClient(base string, connections int) *Client {
	return &Client{base: base, http: &http.Client{
		Timeout: time.Minute, // longer than Lambda's time-out and the gateway's
		// Servers close an idle connection a little later: a request sent at that
		// instant would get no answer.
		Transport: &http.Transport{MaxIdleConnsPerHost: connections, IdleConnTimeout: 30 * time.Second, DisableCompression: true},
	}}
}

// Answer is what came of a request.
type Answer struct {
	// Status is 0 where no response came: the request may have had its effect.
	Status int
	Header http.Header
	Body   []byte
}

// Uncertain reports whether the request may have had its effect or not.
func (a Answer) Uncertain() bool {
	return a.Status == 0 || a.Status >= http.StatusInternalServerError
}

// Credential is the part of a created credential that is compared.
type Credential struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Provider  string `json:"provider"`
	Workspace string `json:"workspace_id"`
	SortOrder int64  `json:"sort_order"`
}

// Credential decodes a 201.
func (a Answer) Credential() (Credential, error) {
	var body struct{ Data Credential }
	err := json.Unmarshal(a.Body, &body)
	return body.Data, err
}

// Replayed reports whether a 201 repeats an earlier one.
func (a Answer) Replayed() bool { return a.Header.Get("Idempotent-Replayed") != "" }

// Issues returns the paths of the issues of a 400.
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

// Create creates a credential, under an idempotency key unless that is empty.
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

// Delete deletes a file of the workspace.
func (c *Client) Delete(ctx context.Context, apiKey, workspace, file string) (Answer, error) {
	path := "/files/" + file + "?workspace_id=" + url.QueryEscape(workspace)
	return c.send(ctx, http.MethodDelete, path, apiKey, http.Header{}, nil)
}

// Job reads a sync job.
func (c *Client) Job(ctx context.Context, apiKey, job string) (Answer, error) {
	return c.send(ctx, http.MethodGet, "/scim/sync-jobs/"+job, apiKey, http.Header{}, nil)
}

// send sends the request. A missing response is not an error.
func (c *Client) send(ctx context.Context, method, path, apiKey string, header http.Header, body []byte) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	request.Header = header
	request.Header.Set("Authorization", "Bearer "+apiKey)
	response, err := c.http.Do(request)
	if err != nil {
		return Answer{}, nil //nolint:nilerr // the service was killed
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{}, nil //nolint:nilerr // the service was killed
	}
	a := Answer{Status: response.StatusCode, Header: response.Header, Body: text}
	id := a.Header.Get("X-Request-Id")
	if id == "" {
		return a, fmt.Errorf("%s %s: %d without a request id", method, path, a.Status)
	}
	var f failure
	if a.Status >= http.StatusBadRequest &&
		(json.Unmarshal(text, &f) != nil || f.Error.Code != a.Status || f.Error.Message == "" || f.Error.Metadata.RequestID != id) {
		return a, fmt.Errorf("%s %s: %d not in the envelope: %q", method, path, a.Status, text)
	}
	return a, nil
}
