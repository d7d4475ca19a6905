package history_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"signalbox.dev/infra/torture/history"
)

// TestBrokenServicesAreFound puts between clients and service what breaks one
// promise, and expects the checker to find it.
func TestBrokenServicesAreFound(t *testing.T) {
	for name, distorted := range map[string]distortion{
		"forgets idempotency keys": {ask: func(r *http.Request) { r.Header.Del("Idempotency-Key") }},
		"never says that it repeats": {answer: func(r *http.Response, _ []byte) ([]byte, error) {
			r.Header.Del("Idempotent-Replayed")
			return nil, nil
		}},
		"says that all is deleted": {answer: func(r *http.Response, _ []byte) ([]byte, error) {
			if r.StatusCode == http.StatusNotFound {
				r.StatusCode = http.StatusOK
			}
			return nil, nil
		}},
		"gives out one position only": {answer: func(r *http.Response, body []byte) ([]byte, error) {
			return change(r, body, "sort_order", 0)
		}},
		"names another workspace": {answer: func(r *http.Response, body []byte) ([]byte, error) {
			return change(r, body, "workspace_id", "7c9e6679-7425-40de-944b-e07fc1f90ae7")
		}},
		"remembers what jobs were like": {answer: remembering()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := history.Run(t.Context(), history.Config{
				Root: "../../..", State: t.TempDir(), Seed: 1, Rounds: 1,
				Via: func(base string) string { return distorted.proxy(t, base) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Broken) == 0 {
				t.Errorf("not found: %+v", result)
			}
		})
	}
}

// lie is a change of requests, or of answers and their bodies: nil leaves the
// body as it is.
type distortion struct {
	ask    func(*http.Request)
	answer func(*http.Response, []byte) ([]byte, error)
}

func (d distortion) proxy(t *testing.T, base string) string {
	t.Helper()
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	target.Path = ""
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if d.ask != nil {
				d.ask(r.Out)
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if d.answer == nil {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			changed, err := d.answer(r, body)
			if changed != nil {
				body = changed
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			r.ContentLength = int64(len(body))
			r.Header.Del("Content-Length")
			return err
		},
	})
	t.Cleanup(server.Close)
	return server.URL + "/api/v1"
}

// change changes one member of a created credential.
func change(r *http.Response, body []byte, name string, value any) ([]byte, error) {
	if r.StatusCode != http.StatusCreated {
		return nil, nil
	}
	var whole struct {
		Data map[string]any `json:"data"`
	}
	if err := json.Unmarshal(body, &whole); err != nil {
		return nil, err
	}
	whole.Data[name] = value
	return json.Marshal(whole)
}

// remembering answers for a job what it answered first.
func remembering() func(*http.Response, []byte) ([]byte, error) {
	var known sync.Map
	return func(r *http.Response, body []byte) ([]byte, error) {
		if r.StatusCode != http.StatusOK || !strings.Contains(r.Request.URL.Path, "sync-jobs") {
			return nil, nil
		}
		first, _ := known.LoadOrStore(r.Request.URL.Path, body)
		return first.([]byte), nil
	}
}
