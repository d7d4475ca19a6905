package history_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/torture/history"
)

// TestBrokenServicesAreFound puts a proxy between clients and service that breaks
// one promise, and expects the checker to name it.
func TestBrokenServicesAreFound(t *testing.T) {
	for name, distorted := range map[string]distortion{
		"stores another key": {want: `does not open, or not to the key that was sent`, request: func(r *http.Request) {
			if r.Body == nil {
				return
			}
			body, _ := io.ReadAll(r.Body) // the test's own
			r.Body = io.NopCloser(strings.NewReader(strings.Replace(string(body), `"sk-`, `"ks-`, 1)))
		}},
		"hides replays": {want: `^once `, response: func(r *http.Response, body []byte) []byte {
			r.Header.Del("Idempotent-Replayed")
			return body
		}},
		"deletes absent files": {want: `^file `, response: func(r *http.Response, body []byte) []byte {
			if r.StatusCode == http.StatusNotFound {
				r.StatusCode = http.StatusOK
			}
			return body
		}},
		"has one position only": {want: `^positions `, response: func(_ *http.Response, body []byte) []byte {
			return regexp.MustCompile(`"sort_order":\d+`).ReplaceAll(body, []byte(`"sort_order":0`))
		}},
		"has stale jobs": {want: `^job `, response: stale()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := history.Run(t, history.Config{
				State: t.TempDir(), Seed: 1, Via: func(base string) string { return distorted.proxy(t, base) },
			})
			if !slices.ContainsFunc(result.Broken, regexp.MustCompile(distorted.want).MatchString) {
				t.Errorf("not found: %+v", result)
			}
		})
	}
}

// distortion changes requests, or responses and their bodies.
type distortion struct {
	want     string // matches the breach that must be found
	request  func(*http.Request)
	response func(*http.Response, []byte) []byte
}

// proxy returns the base URL of a proxy that distorts what it passes on.
func (d distortion) proxy(t *testing.T, base string) string {
	t.Helper()
	target, err := url.Parse(base)
	testkit.Must(t, err)
	target.Path = ""
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if d.request != nil {
				d.request(r.Out)
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if d.response == nil {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			body = d.response(r, body)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Del("Content-Length")
			return nil
		},
	})
	t.Cleanup(server.Close)
	return server.URL + "/api/v1"
}

// stale repeats the first response for each job.
func stale() func(*http.Response, []byte) []byte {
	var first sync.Map
	return func(r *http.Response, body []byte) []byte {
		if r.StatusCode != http.StatusOK || !strings.Contains(r.Request.URL.Path, "sync-jobs") {
			return body
		}
		kept, _ := first.LoadOrStore(r.Request.URL.Path, body)
		return kept.([]byte)
	}
}
