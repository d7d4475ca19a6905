package contract_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// request is one request of the suite, built up by its methods, each of which
// returns a changed copy.
type request struct {
	base         string // of the service it goes to; that of the suite if empty
	operation    string // whose answers are acceptable
	method, path string // the path as it stands in the request line, below the base URL
	header       http.Header
	body         string
}

func get(id string) request {
	return request{operation: "getSyncJob", method: http.MethodGet, path: "/scim/sync-jobs/" + id}
}

func post(body string) request {
	return request{
		operation: "createByokKey", method: http.MethodPost, path: "/byok", body: body,
		header: http.Header{"Content-Type": {"application/json"}},
	}
}

func del(file string) request {
	return request{operation: "deleteFile", method: http.MethodDelete, path: "/files/" + file}
}

// unrouted is a request that no operation takes. Its answer must be the 404
// of an operation that has no headers of its own.
func unrouted(method, path string) request {
	return request{operation: "getSyncJob", method: method, path: path}
}

// at sends the request to another place.
func (r request) at(p place) request {
	r.base = p.base
	return r
}

// in scopes a delete to a workspace.
func (r request) in(workspace string) request {
	r.path += "?workspace_id=" + url.QueryEscape(workspace)
	return r
}

// as sends an API key.
func (r request) as(token string) request { return r.with("Authorization", "Bearer "+token) }

// idempotent sends an idempotency key.
func (r request) idempotent(key string) request { return r.with("Idempotency-Key", key) }

// with sends a header, once for each value; without any it is left out.
func (r request) with(name string, values ...string) request {
	r.header = r.header.Clone()
	if r.header == nil {
		r.header = http.Header{}
	}
	delete(r.header, name)
	if len(values) > 0 {
		r.header[name] = values
	}
	return r
}

// do sends the request and checks what holds of every response.
func (r request) do(t *testing.T) response {
	t.Helper()
	got, err := r.send()
	if err != nil {
		t.Fatal(err)
	}
	got.checkEnvelope(t, r)
	return got
}

// send sends the request and reads the whole response.
func (r request) send() (response, error) {
	target, err := url.Parse(cmp.Or(r.base, the.base))
	if err != nil {
		return response{}, err
	}
	// Opaque goes into the request line as it stands: nothing is cleaned,
	// encoded or decoded on the way.
	target.Opaque = target.Path + r.path
	req := &http.Request{
		Method: r.method, URL: target, Host: target.Host,
		Header: r.header.Clone(), Body: io.NopCloser(strings.NewReader(r.body)), ContentLength: int64(len(r.body)),
	}
	if r.header == nil {
		req.Header = http.Header{}
	}
	if r.body == "" {
		req.Body = http.NoBody
	}
	res, err := the.client.Do(req)
	if err != nil {
		return response{}, fmt.Errorf("sending %s %s: %w", r.method, r.path, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return response{}, fmt.Errorf("reading the answer to %s %s: %w", r.method, r.path, err)
	}
	return response{res.StatusCode, asDeployed(res.Header), body}, nil
}

// secrets are what came with the request and must not come back.
func (r request) secrets() []string {
	secrets := []string{marker}
	for _, value := range slices.Concat(r.header["Authorization"], r.header["Idempotency-Key"]) {
		if _, token, found := strings.Cut(value, " "); found {
			value = strings.TrimSpace(token)
		}
		if len(value) > 8 { // a shorter one may stand in a text by chance
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// reveals reports which of the secrets the text holds, if any.
func reveals(text []byte, secrets []string) (string, bool) {
	for _, s := range secrets {
		if bytes.Contains(text, []byte(s)) {
			return s, true
		}
	}
	return "", false
}
