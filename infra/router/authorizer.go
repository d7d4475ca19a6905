package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/routing"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

const (
	planHeader       = "X-Signalbox-Plan"
	credentialHeader = "X-Signalbox-Credential" //nolint:gosec // a name
	providerHeader   = "X-Signalbox-Provider"
	hostHeader       = "X-Signalbox-Host"
	attemptHeader    = "X-Signalbox-Attempt"
	retriesHeader    = "X-Envoy-Max-Retries"

	// requestTime bounds a request to the authorizer, with its body.
	requestTime = 5 * time.Second
)

// refusal is every response but 200. It ends the caller's request.
type refusal struct {
	status int
	reason string
	cause  error // for the log; nil if the caller is at fault
}

// The messages are the API's, if it has one for the status.
var messages = map[int]string{
	http.StatusBadRequest:            "Invalid request parameters",
	http.StatusUnauthorized:          "Missing Authentication header",
	http.StatusForbidden:             "No provider may serve this request",
	http.StatusNotFound:              "Resource not found",
	http.StatusRequestEntityTooLarge: "Request body too large",
	http.StatusServiceUnavailable:    "Stored credentials are unavailable",
}

func unavailable(cause error) *refusal {
	return &refusal{http.StatusServiceUnavailable, "unavailable", cause}
}

// authorizer finds who calls, plans requests and opens keys.
type authorizer struct {
	config  config
	reader  *routing.Reader
	plans   *plans
	metrics *metrics
	log     *slog.Logger
}

// ServeHTTP implements http.Handler. It does not use http.ServeMux, which redirects
// paths that are not clean.
func (a *authorizer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTime)
	defer cancel()
	r = r.WithContext(ctx)
	switch {
	case isUnder(r, "/plan"):
		a.answer(w, r, "/plan", a.plan)
	case isUnder(r, "/open"):
		a.answer(w, r, "/open", a.open)
	case r.Method == http.MethodGet && r.URL.Path == "/metrics":
		a.metrics.ServeHTTP(w, r)
	case r.Method == http.MethodGet && r.URL.Path == "/health":
		w.WriteHeader(http.StatusOK)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func isUnder(r *http.Request, path string) bool {
	return r.Method == http.MethodPost && (r.URL.Path == path || strings.HasPrefix(r.URL.Path, path+"/"))
}

// answer calls the handler. If the handler does not refuse, it writes the response itself.
func (a *authorizer) answer(w http.ResponseWriter, r *http.Request, path string, handle func(http.ResponseWriter, *http.Request) *refusal) {
	began, status, reason := time.Now(), 0, "aborted"
	defer func() { a.metrics.note(path, status, reason, time.Since(began)) }()
	refused := a.safely(w, r, handle)
	if refused == nil {
		status, reason = http.StatusOK, "ok"
		return
	}
	status, reason = refused.status, refused.reason
	if refused.cause != nil {
		attrs := []slog.Attr{slog.String("path", path), slog.String("reason", reason), {Key: "error", Value: calls.Describe(refused.cause)}}
		if p, ok := errors.AsType[calls.Panic](refused.cause); ok {
			attrs = append(attrs, slog.String("stack", string(p.Stack)))
		}
		a.log.LogAttrs(r.Context(), slog.LevelError, "refused", attrs...)
	}
	refuse(w, status, reason)
}

// safely returns a panic as a refusal. A panic that aborts the response goes on, so the
// connection is closed.
func (a *authorizer) safely(w http.ResponseWriter, r *http.Request, handle func(http.ResponseWriter, *http.Request) *refusal) (refused *refusal) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(v) // net/http closes the connection
		default:
			refused = unavailable(calls.Recovered(v))
		}
	}()
	return handle(w, r)
}

func refuse(w http.ResponseWriter, status int, reason string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{ // the connection may be gone
		"code": status, "message": messages[status], "metadata": map[string]any{"reason": reason},
	}})
}

// plan decides how a request may be served and remembers it for /open.
func (a *authorizer) plan(w http.ResponseWriter, r *http.Request) *refusal {
	made, refused := a.decide(w, r)
	if refused != nil {
		return refused
	}
	w.Header().Set(planHeader, a.plans.add(made))
	w.Header().Set(retriesHeader, strconv.Itoa(len(made.steps)-1))
	w.WriteHeader(http.StatusOK)
	return nil
}

// decide finds who calls, reads the model from the body, and plans the request.
func (a *authorizer) decide(w http.ResponseWriter, r *http.Request) (plan, *refusal) {
	caller, refused := a.identify(r)
	if refused != nil {
		return plan{}, refused
	}
	body := http.MaxBytesReader(w, r.Body, a.config.MaxBodyBytes)
	model, err := readModel(body)
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	users := r.Header.Values(a.config.UserIDHeader) // none if no header is configured
	providers := a.config.Models[model]
	switch {
	case tooLarge:
		return plan{}, &refusal{http.StatusRequestEntityTooLarge, "body_too_large", nil}
	case err != nil:
		return plan{}, &refusal{http.StatusBadRequest, "malformed_body", nil}
	case len(users) > 1: // one of them may be the client's
		return plan{}, &refusal{http.StatusBadRequest, "repeated_user_id", nil}
	case providers == nil:
		return plan{}, &refusal{http.StatusNotFound, "unknown_model", nil}
	}
	request := routing.Request{Model: model, Providers: providers}
	if len(users) == 1 {
		request.UserID = users[0]
	}
	reading, err := a.reader.Read(r.Context(), caller, request)
	if err != nil {
		return plan{}, refusalOf(err)
	}
	steps := a.offered(reading)
	if len(steps) == 0 {
		return plan{}, &refusal{http.StatusForbidden, "no_step", nil}
	}
	return plan{caller: caller, request: request, steps: steps, reading: reading.Only(steps[0])}, nil
}

func (a *authorizer) identify(r *http.Request) (*routing.Caller, *refusal) {
	bearer, err := auth.ParseBearer(r.Header.Values("Authorization"))
	if err != nil {
		return nil, refusalOf(err)
	}
	caller, err := a.reader.Identify(r.Context(), bearer)
	if err != nil {
		return nil, refusalOf(err)
	}
	return caller, nil
}

// refusalOf returns the refusal for the reader's error.
func refusalOf(err error) *refusal {
	rejection, rejected := errors.AsType[*auth.Rejection](err)
	switch {
	case rejected:
		return &refusal{http.StatusUnauthorized, string(rejection.Reason), rejection.Fault}
	case errors.Is(err, routing.ErrManagementKey):
		return &refusal{http.StatusForbidden, "management_key", nil}
	case errors.Is(err, routing.ErrNoWorkspace):
		return &refusal{http.StatusForbidden, "no_workspace", nil}
	default:
		return unavailable(err)
	}
}

// offered are the steps of the plan without the shared endpoints for which the
// platform has no key.
func (a *authorizer) offered(reading *routing.Reading) []routing.Step {
	return slices.DeleteFunc(slices.Clone(reading.Steps), func(s routing.Step) bool {
		return s.IsShared() && a.config.Providers[s.Provider].KeyFile == ""
	})
}

// readModel reads the model from a request's body: one JSON object with one member
// "model". A name that differs only in case counts as a second one, because some
// providers would read it.
func readModel(body io.Reader) (model string, err error) {
	d := jsontext.NewDecoder(body, jsontext.AllowDuplicateNames(true))
	malformed := errors.New("the body is not a JSON object with one model")
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return "", cmp.Or(err, malformed)
	}
	models := 0
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return "", err
		}
		name := token.String()
		if !strings.EqualFold(name, "model") {
			if err := d.SkipValue(); err != nil {
				return "", err
			}
			continue
		}
		value, err := d.ReadToken()
		if models++; err != nil || models > 1 || name != "model" || value.Kind() != '"' {
			return "", cmp.Or(err, malformed)
		}
		model = value.String()
	}
	if _, err := d.ReadToken(); err != nil { // the object's end
		return "", err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) || model == "" {
		return "", errors.Join(err, malformed)
	}
	return model, nil
}

// open sends the key of the plan's next step. Without a plan it sends the first step's key.
func (a *authorizer) open(w http.ResponseWriter, r *http.Request) *refusal {
	t, refused := a.turn(w, r)
	if refused != nil {
		return refused
	}
	credential := string(cmp.Or(t.step.Credential, "shared"))
	key, err := a.key(r.Context(), t)
	if err != nil {
		a.metrics.opened.WithLabelValues(kind(t.step), "unavailable").Inc()
		return unavailable(fmt.Errorf("%s: %w", t, err))
	}
	defer key.Wipe()
	if !fitsHeader(key.Reveal()) {
		a.metrics.opened.WithLabelValues(kind(t.step), "no_header").Inc()
		return &refusal{http.StatusServiceUnavailable, "key_is_no_header", fmt.Errorf("%s: no header can carry its key unchanged", t)}
	}
	provider := a.config.Providers[t.step.Provider]
	w.Header().Set(credentialHeader, credential)
	w.Header().Set(providerHeader, t.step.Provider)
	w.Header().Set(hostHeader, provider.Host)
	w.Header().Set(attemptHeader, strconv.Itoa(t.taken+1))
	sendKey(w, r, provider.Header, *provider.Prefix, key.Reveal())
	a.metrics.opened.WithLabelValues(kind(t.step), "ok").Inc()
	return nil
}

func kind(s routing.Step) string {
	if s.IsShared() {
		return "shared"
	}
	return "credential"
}

// turn takes the next turn of the request's plan, or plans a request that has none. The
// plan's reading serves its first turn while it is fresh. Before any other turn it reads
// the rows again, because a revoked credential must serve no later attempt.
func (a *authorizer) turn(w http.ResponseWriter, r *http.Request) (turn, *refusal) {
	names := r.Header.Values(planHeader)
	if len(names) == 0 {
		made, refused := a.decide(w, r)
		if refused != nil {
			return turn{}, refused
		}
		return turn{made, made.steps[0]}, nil
	}
	t, ok := a.plans.take(names[0], func(c *routing.Caller) bool { return len(names) == 1 && mayBe(r, c) })
	if !ok {
		return turn{}, &refusal{http.StatusServiceUnavailable, "unknown_plan", nil}
	}
	if t.reading != nil {
		return t, nil
	}
	var err error
	t.reading, err = a.reader.Read(r.Context(), t.caller, t.request)
	if err != nil {
		if refused := refusalOf(err); refused.status == http.StatusServiceUnavailable {
			return turn{}, refused
		}
	}
	if err != nil || !slices.Contains(t.reading.Steps, t.step) {
		return turn{}, &refusal{http.StatusServiceUnavailable, "step_withdrawn", nil}
	}
	return t, nil
}

// mayBe reports whether the request can come from the plan's caller. If the router sends
// an API key, it must be that caller's.
func mayBe(r *http.Request, c *routing.Caller) bool {
	given := r.Header.Values("Authorization")
	bearer, err := auth.ParseBearer(given)
	return len(given) == 0 || err == nil && bearer.Hash() == c.KeyHash()
}

// key returns the key of this turn's step. The caller wipes it.
func (a *authorizer) key(ctx context.Context, t turn) (secret.Bytes, error) {
	if !t.step.IsShared() {
		return t.reading.Open(ctx, t.step)
	}
	text, err := os.ReadFile(a.config.Providers[t.step.Provider].KeyFile)
	if err != nil {
		return secret.Bytes{}, err
	}
	key := bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	if len(key) == 0 {
		return secret.Bytes{}, fmt.Errorf("the platform's key: %w", seal.ErrCiphertext)
	}
	return secret.New(key), nil
}
