package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"signalbox.dev/infra/local/gateway"
	"signalbox.dev/infra/local/runtime"
	"signalbox.dev/infra/local/template"
)

// front stands before the gateway of an edition: it plays the firewall and a canary,
// and makes answers wrong.
type front struct {
	*StandIn
	d       *deployment
	gateway http.Handler
}

const maxInspected = 64 << 10

// own writes an answer of the front's own. The connection ends: the gateway counts
// the requests on it.
func own(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) //nolint:gosec // for a test on this machine
}

func envelope(w http.ResponseWriter, status int) {
	w.Header().Set("X-Request-Id", "made-up")
	own(w, status, fmt.Sprintf(`{"error":{"code":%d,"message":"wrong on purpose","metadata":{"request_id":"made-up"}}}`, status))
}

var known = regexp.MustCompile(`^/api/v1/(scim/sync-jobs/[^/]+|byok|files/[^/]+)$`)

// ServeHTTP answers by itself, or changes what the gateway answers.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, query, _ := strings.Cut(r.RequestURI, "?") // with "_" for each "%"
	if f.refuses(w, r, path, query) {
		return
	}
	f.request(r, path, query)
	got := f.gateway
	if faulty := f.canaryFor(path); faulty != nil {
		got = faulty
	}
	// The status line is needed before anything is changed.
	answer := httptest.NewRecorder()
	got.ServeHTTP(answer, r)
	result := answer.Result() //nolint:bodyclose // it is in memory
	body := answer.Body.String()
	status := f.response(r, path, query, result, &body)
	for name, values := range result.Header {
		w.Header()[name] = values
	}
	if status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// refuses answers in place of the gateway, and reports whether it did.
func (f *front) refuses(w http.ResponseWriter, r *http.Request, path, query string) bool {
	bearer := r.Header.Get("Authorization")
	size := r.ContentLength
	file, isFile := strings.CutPrefix(path, "/api/v1/files/")
	deletes := r.Method == http.MethodDelete && isFile && len(file) > 20 && query == "" && bearer != ""
	switch {
	case f.d.firewal && size > maxInspected && f.is("firewall-plain"):
		own(w, http.StatusForbidden, "<html>403 Forbidden</html>")
	case f.d.firewal && size > maxInspected && !f.is("firewall-off"):
		own(w, http.StatusBadRequest, `{"error":{"code":400,"message":"Invalid request parameters","metadata":{"issues":[{"path":"","message":"the body is too large"}]}}}`)
	case !known.MatchString(path) && bearer == "" && f.is("unknown-route-403"):
		own(w, http.StatusForbidden, `{"message":"Missing Authentication Token"}`)
	case !known.MatchString(path) && bearer != "" && f.is("bearer-as-signature-400"):
		w.Header().Set("X-Amzn-Errortype", "IncompleteSignatureException")
		envelope(w, http.StatusBadRequest)
	case !known.MatchString(path) && bearer != "" && f.is("bearer-quoted"):
		own(w, http.StatusForbidden, fmt.Sprintf(`{"message":"Authorization header requires 'Credential' parameter. Authorization=%s"}`, bearer))
	case path == "/api/v1/byok" && r.Method != http.MethodPost && f.is("wrong-method-405"):
		own(w, http.StatusMethodNotAllowed, `{"message":"Method Not Allowed"}`)
	case size > 10<<20 && f.is("body-11-mb-413"), size > 6<<20 && size <= 10<<20 && f.is("body-7-mb-413"):
		_, _ = io.Copy(io.Discard, r.Body)
		own(w, http.StatusRequestEntityTooLarge, `{"message":"Request Too Long"}`)
	case size > 10<<20 && f.is("body-11-mb-accepted"), size > 6<<20 && size <= 10<<20 && f.is("body-7-mb-accepted"):
		_, _ = io.Copy(io.Discard, r.Body)
		own(w, http.StatusCreated, `{"data":{}}`)
	case strings.Contains(query, "_ff=") && f.is("odd-query-400"):
		own(w, http.StatusBadRequest, `{"message":"Bad Request"}`)
	case strings.Contains(query, "_ff=") && f.is("odd-query-404"):
		envelope(w, http.StatusNotFound)
	case deletes && !f.d.second && f.is("delete-does-nothing") && f.nth("delete-does-nothing") == 1,
		deletes && f.d.second && f.is("versions-left") && f.nth("versions-left") == 1,
		deletes && f.d.second && f.is("hidden-file-left") && f.nth("hidden-file-left") == 2:
		own(w, http.StatusOK, `{"id":"`+file+`"}`)
	default:
		return false
	}
	return true
}

// request changes a request before the gateway reads it.
func (f *front) request(r *http.Request, path, query string) {
	if f.is("if-none-match-dropped") {
		r.Header.Del("If-None-Match")
	}
	if once, again, ok := strings.Cut(query, "&"); ok && once == again && f.is("query-sent-once") {
		r.RequestURI = path + "?" + once
		*r = *r.WithContext(context.Background()) // the gateway then reads RequestURI, and loses count of the connection's requests
	}
}

// response changes the gateway's answer, and returns its status.
func (f *front) response(r *http.Request, path, query string, result *http.Response, body *string) int {
	status, header := result.StatusCode, result.Header
	if r.Context() == context.Background() {
		header.Set("Connection", "close")
	}
	rename := func(name string) {
		if values, ok := header[name]; ok {
			header["X-Amzn-Remapped-"+name] = values
			delete(header, name)
		}
	}
	replace := func(to int, text string) {
		status, *body = to, text
		header.Set("Connection", "close")
	}
	file, isFile := strings.CutPrefix(path, "/api/v1/files/")
	limited := status == http.StatusTooManyRequests && header.Get("Ratelimit") != ""
	idempotent := r.Header.Get("Idempotency-Key")
	if f.is("etag-renamed") {
		rename("Etag")
	}
	for name, challenge := range header {
		if !strings.EqualFold(name, "X-Amzn-Remapped-Www-Authenticate") {
			continue
		}
		if f.is("challenge-not-renamed") {
			header["Www-Authenticate"] = challenge
		}
		if f.is("challenge-not-renamed") || f.is("challenge-dropped") {
			delete(header, name)
		}
	}
	if f.is("cache-control-dropped") {
		header.Del("Cache-Control")
	}
	switch {
	case limited && f.is("retry-after-renamed"):
		rename("Retry-After")
	case status == http.StatusTooManyRequests && !limited && f.is("throttle-plain"):
		replace(status, `{"message":"Too Many Requests"}`)
	case status == http.StatusTooManyRequests && !limited && f.is("throttle-never"):
		replace(http.StatusOK, `{"data":{}}`)
	case status == http.StatusCreated && idempotent == "" && f.is("table-key-denied") && f.nth("table-key-denied") == 2: // the first comes before any probe
		replace(http.StatusInternalServerError, `{"message":"AccessDenied"}`)
	case idempotent != "" && f.is("transaction-denied") && f.nth("transaction-denied "+idempotent) == 2:
		replace(http.StatusInternalServerError, `{"message":"AccessDenied"}`)
	case idempotent != "" && f.is("conflict-500") && f.nth("conflict-500") == 20: // the two before are the transaction's
		replace(http.StatusInternalServerError, `{"message":"TransactionConflict"}`)
	case file == "file_missing" && f.is("missing-file-500"):
		replace(http.StatusInternalServerError, `{"message":"AccessDenied"}`)
	case isFile && r.Method == http.MethodDelete && query == "" && status == http.StatusOK && f.is("two-deleters"):
		f.nth("deleted " + file)
	case isFile && query == "" && status == http.StatusNotFound && f.is("two-deleters") && f.nth("deleted "+file) == 2:
		replace(http.StatusOK, `{"id":"`+file+`"}`)
	case status >= http.StatusInternalServerError && strings.HasSuffix(path, "/malformed") && f.is("malformed-answer-502"),
		status >= http.StatusInternalServerError && strings.HasPrefix(path, "/api/v1/scim") && !strings.HasSuffix(path, "/malformed") && f.is("crash-answer-502"):
		replace(http.StatusBadGateway, `{"message": "Internal server error"}`)
	}
	return status
}

// canary is a version of the function for the job that gets a part of its requests.
type canary struct {
	handler http.Handler
	lambda  *runtime.Lambda

	mu                 sync.Mutex
	crashes, malformed int
	whole              bool
}

// canaryFor returns what serves a request in place of the good version, if anything.
func (f *front) canaryFor(path string) http.Handler {
	f.mu.Lock()
	faulty := f.d.faulty
	f.d.nth++
	nth := f.d.nth
	f.mu.Unlock()
	if faulty == nil || !strings.HasPrefix(path, "/api/v1/scim/sync-jobs/") {
		return nil
	}
	faulty.mu.Lock()
	defer faulty.mu.Unlock()
	if !faulty.whole && nth%4 > 1 {
		return nil
	}
	if strings.HasSuffix(path, "/malformed") {
		faulty.malformed++
	} else {
		faulty.crashes++
	}
	return faulty.handler
}

// canary deploys a faulty version: once it has failed, the alarm takes it back.
func (s *StandIn) canary(ctx context.Context, st *stack, folder string) error {
	l, err := runtime.New(runtime.Config{
		Functions: []runtime.Function{{
			Name: "GetSyncJobFunction", Binary: filepath.Join(folder, "GetSyncJobFunction", "bootstrap"), Handler: "bootstrap", MemoryMB: 256, Timeout: 10 * time.Second,
		}},
		Region: Region, Account: template.Account, Output: func(string, []byte) {}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	defer l.Close()
	faulty := &canary{lambda: l, handler: gateway.New(gateway.Config{API: s.api, Functions: l, Account: template.Account, Log: slog.New(slog.DiscardHandler)})}
	s.mu.Lock()
	d := st.deployment
	d.faulty, st.status = faulty, "UPDATE_IN_PROGRESS"
	forward := s.wrong["canary-not-rolled-back"]
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		d.faulty = nil
		s.mu.Unlock()
	}()
	for {
		faulty.mu.Lock()
		enough := faulty.crashes > 1 && faulty.malformed > 1
		faulty.mu.Unlock()
		if enough {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if forward {
		st.version++
		st.status = "UPDATE_COMPLETE"
		return nil
	}
	st.status = "UPDATE_ROLLBACK_COMPLETE"
	return errors.New("failed to update the stack: CodeDeploy: one or more alarms have been activated")
}
