package contract_test

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"signalbox.dev/infra/testkit"
)

// request is one request. Each of its methods returns a changed copy.
type request struct {
	base         string // of the server; empty means the suite's
	operation    string // whose responses are acceptable
	method, path string // the path as in the request line, below the base URL
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

// unrouted is a request of no operation. Its response must be the 404 of an
// operation that has no headers of its own.
func unrouted(method, path string) request {
	return request{operation: "getSyncJob", method: method, path: path}
}

// bodyWith returns a body with all required members and the ones given.
func bodyWith(members string) string {
	return `{"key":"` + providerKey + `","provider":"openai"` + members + `}`
}

// keyBody returns a body with the JSON text as its key.
func keyBody(text string) string { return `{"provider":"openai","key":` + text + `}` }

// at sends the request to another server.
func (r request) at(s server) request {
	r.base = s.base
	return r
}

// query adds parameters, not escaped.
func (r request) query(parameters ...string) request {
	separator := "?"
	if strings.Contains(r.path, "?") {
		separator = "&"
	}
	r.path += separator + strings.Join(parameters, "&")
	return r
}

// in scopes a delete to a workspace.
func (r request) in(workspace string) request { return r.query("workspace_id=" + workspace) }

// as sends an API key.
func (r request) as(token string) request { return r.with("Authorization", "Bearer "+token) }

func (r request) idempotent(key string) request { return r.with("Idempotency-Key", key) }

// with sends a header, once for each value; without values it is omitted.
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

// do sends the request and checks what holds for every response.
func (r request) do(t *testing.T) response {
	t.Helper()
	got, err := r.send()
	must(t, err)
	got.checkEnvelope(t, r)
	return got
}

// send sends the request and reads the whole response.
func (r request) send() (response, error) {
	target, err := url.Parse(cmp.Or(r.base, the.base))
	if err != nil {
		return response{}, err
	}
	// An opaque target goes into the request line unchanged.
	target.Opaque = target.Path + r.path
	q := &http.Request{
		Method: r.method, URL: target, Host: target.Host,
		Header: r.header.Clone(), Body: io.NopCloser(strings.NewReader(r.body)), ContentLength: int64(len(r.body)),
	}
	if r.header == nil {
		q.Header = http.Header{}
	}
	if r.body == "" {
		q.Body = http.NoBody
	}
	res, err := the.client.Do(q)
	if err != nil {
		return response{}, fmt.Errorf("sending %s %s: %w", r.method, r.path, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return response{}, fmt.Errorf("reading the response to %s %s: %w", r.method, r.path, err)
	}
	return response{res.StatusCode, asDeployed(res.Header), body}, nil
}

// atOnce sends n requests at the same instant and counts their statuses.
func atOnce(t *testing.T, n int, nth func(i int) request) (responses []response, statuses map[int]int) {
	t.Helper()
	requests, errs := make([]request, n), make([]error, n)
	responses, statuses = make([]response, n), map[int]int{}
	start := make(chan struct{})
	var done sync.WaitGroup
	for i := range n {
		requests[i] = nth(i)
		done.Go(func() {
			<-start
			responses[i], errs[i] = requests[i].send()
		})
	}
	close(start)
	done.Wait()
	for i, r := range responses {
		must(t, errs[i])
		r.checkEnvelope(t, requests[i])
		statuses[r.status]++
	}
	return responses, statuses
}

// secrets are the values of the request that must not come back.
func (r request) secrets() []string {
	secrets := []string{testkit.Marker}
	for _, value := range slices.Concat(r.header["Authorization"], r.header["Idempotency-Key"]) {
		if _, token, found := strings.Cut(value, " "); found {
			value = strings.TrimSpace(token)
		}
		if len(value) > 8 { // a shorter one may be in a text by chance
			secrets = append(secrets, value)
		}
	}
	return secrets
}
