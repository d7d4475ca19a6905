package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
)

const (
	planHeader       = "X-Signalbox-Plan"
	credentialHeader = "X-Signalbox-Credential" //nolint:gosec // a name
	providerHeader   = "X-Signalbox-Provider"
	hostHeader       = "X-Signalbox-Host" // of a document
	pathHeader       = "X-Signalbox-Path"
	documentsHeader  = "X-Signalbox-Documents" // the router's: it heeds the host
	servedByHeader   = "X-Signalbox-Served-By"
	// For the router's log, on refusals too.
	accountHeader   = "X-Signalbox-Account"
	workspaceHeader = "X-Signalbox-Workspace"
	modelHeader     = "X-Signalbox-Model"
	keyHeader       = "X-Signalbox-Key" // the first characters of the API key's hash
	nthHeader       = "X-Signalbox-Attempt"
	reasonHeader    = "X-Signalbox-Reason"
	skippedHeader   = "X-Signalbox-Skipped"
	callHeader      = "X-Signalbox-Call" // the path, which Envoy's routes have checked
	// Envoy's.
	partialHeader   = "X-Envoy-Auth-Partial-Body" // its buffer did not hold the whole body
	attemptHeader   = "X-Envoy-Attempt-Count"
	retriesHeader   = "X-Envoy-Max-Retries"
	requestIDHeader = "X-Request-Id"

	// requestTime bounds a request to the authorizer, with its body.
	requestTime = 5 * time.Second
)

// refusal is a response that ends the caller's request.
type refusal struct {
	status int
	reason string
	cause  error // for the log; nil if nothing failed
}

// Error implements error.
func (r *refusal) Error() string { return r.reason }

// The messages are the API's, if it has one for the status.
var messages = map[int]string{
	http.StatusBadRequest:            "Invalid request parameters",
	http.StatusUnauthorized:          "Missing Authentication header",
	http.StatusForbidden:             "No provider may serve this request",
	http.StatusNotFound:              "Resource not found",
	http.StatusRequestEntityTooLarge: "Request body too large",
	http.StatusUnprocessableEntity:   "A stored credential cannot be used",
	http.StatusServiceUnavailable:    "Stored credentials are unavailable",
}

// howToSend has the messages for reasons that a client's settings can help. Anthropic's SDKs
// send api_key in another header.
var howToSend = map[string]string{
	"missing":          "Missing Authentication header: send the Signalbox API key as Authorization: Bearer (auth_token in Anthropic's SDKs, not api_key)",
	"content_encoding": "Invalid request parameters: send the body uncompressed",
}

// authorizer finds who calls, plans requests and opens keys.
type authorizer struct {
	config  config
	reader  *routing.Reader
	kept    readings
	bodies  bodies
	metrics metrics
	log     *slog.Logger
	isReady atomic.Bool
}

// newAuthorizer returns an authorizer. Close its reader after use.
func newAuthorizer(c config, clients aws.Config, log *slog.Logger) (*authorizer, error) {
	a := &authorizer{config: c, log: log, bodies: newBodies(c.MaxBodyBytes)}
	a.metrics = newMetrics(func() int { return a.reader.Kept() })
	clients.APIOptions = append(clients.APIOptions, a.metrics.watch)
	var err error
	a.reader, err = routing.NewReader(dynamodb.NewFromConfig(clients), kms.NewFromConfig(clients), routing.Config{
		AccessTable: c.Stack.AccessTable, CredentialsTable: c.Stack.CredentialsTable,
		SealingKeyARNs: c.Stack.sealingKeys(),
	})
	for name, p := range c.Providers {
		if byok.FormOf(p.key.Reveal()) == byok.Odd {
			log.Warn("the platform's key looks as if something was pasted around it", "provider", name)
		}
	}
	return a, err
}

// ServeHTTP implements http.Handler. It does not use http.ServeMux, which redirects
// paths that are not clean.
func (a *authorizer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTime)
	defer cancel()
	r = r.WithContext(ctx)
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/metrics":
		a.metrics.ServeHTTP(w, r)
	case r.Method == http.MethodGet && r.URL.Path == "/health":
		w.WriteHeader(http.StatusOK)
	case r.Method == http.MethodGet && r.URL.Path == "/ready":
		if !a.isReady.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	case isUnder(r, "/who"):
		a.serve(w, r, "/who", a.who)
	case r.Method == http.MethodGet && r.URL.Path == "/plan/v1/models":
		a.serve(w, r, "/plan", a.models)
	case isUnder(r, "/plan"):
		a.serve(w, r, "/plan", a.plan)
	case isUnder(r, "/open"):
		a.serve(w, r, "/open", a.open)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func isUnder(r *http.Request, path string) bool {
	return r.URL.Path == path || strings.HasPrefix(r.URL.Path, path+"/")
}

// serve calls the handler. A handler that returns nil has written its response, or leaves an
// empty 200 to net/http. The metric counts both as 200, also the 418 of models.
func (a *authorizer) serve(w http.ResponseWriter, r *http.Request, path string, handle func(http.ResponseWriter, *http.Request) error) {
	began, status, reason := time.Now(), 0, "aborted"
	defer func() { a.metrics.decided(path, status, reason, began) }()
	w.Header().Set(callHeader, strings.TrimPrefix(r.URL.Path, path))
	err := safely(w, r, handle)
	if err == nil {
		status, reason = http.StatusOK, "ok"
		return
	}
	refused := refusalOf(err)
	status, reason = refused.status, refused.reason
	if refused.cause != nil {
		a.logRefusal(r, path, refused)
	}
	a.refuse(w, status, reason)
}

// safely returns a panic as an error. A panic that aborts the response goes on, so the
// connection is closed.
func safely(w http.ResponseWriter, r *http.Request, handle func(http.ResponseWriter, *http.Request) error) (err error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(v) // net/http closes the connection
		default:
			err = calls.Recovered(v)
		}
	}()
	return handle(w, r)
}

// refusalOf returns the refusal for an error: 503 for an outage, 4xx if no retry helps.
func refusalOf(err error) *refusal {
	if refused, ok := errors.AsType[*refusal](err); ok {
		return refused
	}
	rejection, rejected := errors.AsType[*auth.Rejection](err)
	switch {
	case rejected:
		return &refusal{http.StatusUnauthorized, string(rejection.Reason), rejection.Damage}
	case errors.Is(err, routing.ErrManagementKey):
		return &refusal{http.StatusForbidden, "management_key", nil}
	case errors.Is(err, routing.ErrNoWorkspace):
		return &refusal{http.StatusForbidden, "no_workspace", nil}
	case errors.Is(err, routing.ErrTooMany):
		return &refusal{http.StatusUnprocessableEntity, "workspace_too_large", err}
	case errors.Is(err, calls.ErrDamaged):
		return &refusal{http.StatusUnprocessableEntity, "damaged_row", err}
	default:
		return &refusal{http.StatusServiceUnavailable, "unavailable", err}
	}
}

func (a *authorizer) logRefusal(r *http.Request, path string, refused *refusal) {
	attrs := []slog.Attr{slog.String("path", path), slog.String("reason", refused.reason), {Key: "error", Value: calls.Describe(refused.cause)}}
	if id, ok := ids.Parse[string](r.Header.Get(requestIDHeader)); ok {
		attrs = append(attrs, slog.String("request", id))
	}
	if p, ok := errors.AsType[calls.Panic](refused.cause); ok {
		attrs = append(attrs, slog.String("stack", string(p.Stack)))
	}
	a.log.LogAttrs(r.Context(), slog.LevelError, "refused", attrs...)
}

// refuse writes the refusal. The status of an outage is a setting, because some routers
// drop the body of a 5xx; the body says 503.
func (a *authorizer) refuse(w http.ResponseWriter, status int, reason string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(reasonHeader, reason)
	if status == http.StatusServiceUnavailable {
		w.WriteHeader(a.config.OutageStatus)
	} else {
		w.WriteHeader(status)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{ // the connection may be gone
		"code": status, "message": cmp.Or(howToSend[reason], messages[status]), "metadata": map[string]any{"reason": reason},
	}})
}

// who finds who calls, from the API key alone.
func (a *authorizer) who(w http.ResponseWriter, r *http.Request) error {
	hash, err := keyOf(w, r)
	if err != nil {
		return err
	}
	caller, err := a.reader.Identify(r.Context(), hash)
	if err != nil {
		return err
	}
	w.Header().Set(accountHeader, string(caller.Account()))
	return nil
}

// keyOf returns the hash of the caller's API key, which may be unknown.
func keyOf(w http.ResponseWriter, r *http.Request) (ids.KeyHash, error) {
	bearer, err := auth.ParseBearer(r.Header.Values("Authorization"))
	if err != nil {
		return "", err
	}
	w.Header().Set(keyHeader, bearer.Hash().Short())
	return bearer.Hash(), nil
}

// models lists the configured models as OpenAI does. The status is not 200, because Envoy
// would send the request on; 418 is no other response's, so a mapper can make it 200.
func (a *authorizer) models(w http.ResponseWriter, r *http.Request) error {
	if err := a.who(w, r); err != nil {
		return err
	}
	list := []map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(a.config.Models)) {
		list = append(list, map[string]any{"id": name, "object": "model", "created": 0, "owned_by": "signalbox"})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusTeapot)
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": list}) // the connection may be gone
	return nil
}

// plan decides how a request may be served.
func (a *authorizer) plan(w http.ResponseWriter, r *http.Request) error {
	first, err := a.firstAttempt(w, r)
	if err != nil {
		return err
	}
	name := a.config.nameKeys.sign(first.ticket)
	a.kept.keep(name, first.reading.First())
	w.Header().Set(planHeader, name)
	w.Header().Set(retriesHeader, strconv.Itoa(len(first.Steps)-1))
	return nil
}

// open sends an attempt's key.
func (a *authorizer) open(w http.ResponseWriter, r *http.Request) error {
	at, err := a.attemptOf(w, r)
	if err != nil {
		return err
	}
	provider := a.config.Providers[at.step.Provider]
	w.Header().Set(providerHeader, at.step.Provider)
	if at.step.IsShared() {
		w.Header().Set(credentialHeader, "shared")
		w.Header().Set(servedByHeader, "platform")
		path, err := provider.path(callOf(r))
		if err != nil {
			return err
		}
		sendKey(w, r, provider, target{provider.key, "", path})
		a.metrics.opened("shared", "ok")
		return nil
	}
	w.Header().Set(credentialHeader, string(at.step.Credential))
	w.Header().Set(servedByHeader, "own")
	to, err := at.openKey(r, provider)
	defer to.key.Wipe()
	if err != nil {
		refused := refusalOf(err)
		a.metrics.opened("credential", refused.reason)
		refused.cause = fmt.Errorf("credential %s for %s, workspace %s, account %s: %w",
			at.step.Credential, at.step.Provider, at.reading.Workspace, at.reading.Account, refused.cause)
		return refused
	}
	sendKey(w, r, provider, to)
	a.metrics.opened("credential", "ok")
	return nil
}

// attempt is one step of a plan and the reading that can open its key.
type attempt struct {
	ticket
	reading *routing.Reading
	step    routing.Step
}

// openKey opens the attempt's key, and returns its target.
func (at attempt) openKey(r *http.Request, provider *providerConfig) (target, error) {
	key, err := at.reading.Open(r.Context(), at.step)
	if err != nil {
		if !errors.Is(err, routing.ErrUnavailable) {
			err = &refusal{http.StatusUnprocessableEntity, "damaged_key", err}
		}
		return target{}, err
	}
	to, err := provider.target(r.Context(), key, callOf(r), at.Model)
	if err == nil && to.host != "" && r.Header.Get(documentsHeader) == "" {
		err = &refusal{http.StatusUnprocessableEntity, "key_is_document", errors.New("the router does not say that it heeds " + hostHeader)}
	}
	if err != nil || to.host != "" {
		key.Wipe() // a document's key is a copy
	}
	return to, err
}

// callOf returns the call of an attempt, such as "chat/completions".
func callOf(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/open/v1/") }

// attemptOf returns the attempt that a request asks for. It decides by the present rows. The
// plan's own reading serves the first attempt while it is fresh. A request without a plan is
// planned, and gets the first step.
func (a *authorizer) attemptOf(w http.ResponseWriter, r *http.Request) (attempt, error) {
	names := r.Header.Values(planHeader)
	if len(names) == 0 {
		return a.firstAttempt(w, r)
	}
	t, ok := a.config.nameKeys.read(names[0])
	if !ok || len(names) > 1 || time.Since(time.UnixMilli(t.Made)) > a.config.PlanAge || !mayComeFrom(r, t.Caller) {
		return attempt{}, &refusal{http.StatusForbidden, "unknown_plan", nil}
	}
	w.Header().Set(keyHeader, t.Caller.Short())
	n, ok := countOf(r, len(t.Steps))
	if !ok {
		return attempt{}, &refusal{http.StatusForbidden, "unknown_attempt", nil}
	}
	w.Header().Set(nthHeader, strconv.Itoa(n))
	var reading *routing.Reading
	if n == 1 {
		reading = a.kept.take(names[0])
	}
	if reading != nil {
		describe(w, t.Model, reading)
	} else {
		var err error
		if reading, err = a.read(w, r, t.Caller, t.Model, string(t.UserID)); err != nil {
			return attempt{}, err
		}
	}
	step, ok := reading.Next(func(s routing.Step) bool { return slices.Contains(t.Steps[:n-1], idOf(s)) })
	if !ok {
		return attempt{}, noStep(reading.Plan)
	}
	return attempt{t, reading, step}, nil
}

// countOf returns the number of the attempt, from 1 to most.
func countOf(r *http.Request, most int) (n int, ok bool) {
	counts := r.Header.Values(attemptHeader)
	if len(counts) != 1 {
		return 0, false
	}
	n, err := strconv.Atoi(counts[0])
	return n, err == nil && strconv.Itoa(n) == counts[0] && n >= 1 && n <= most
}

// mayComeFrom reports whether the request can come from the caller with this API key. If the
// router sends an API key, it must be that one.
func mayComeFrom(r *http.Request, hash ids.KeyHash) bool {
	given := r.Header.Values("Authorization")
	bearer, err := auth.ParseBearer(given)
	return len(given) == 0 || err == nil && bearer.Hash() == hash
}

// firstAttempt plans the request of a body, and returns its first attempt. A refusal that needs no
// rows still asks who calls: an unknown caller gets a 401, and the router's log has the
// account of a known one.
func (a *authorizer) firstAttempt(w http.ResponseWriter, r *http.Request) (attempt, error) {
	hash, err := keyOf(w, r)
	if err != nil {
		return attempt{}, err
	}
	asked, err := a.requested(w, r)
	if err != nil {
		// net/http has ended the request's own context if the body is late.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), requestTime-readTime)
		defer cancel()
		return attempt{}, cmp.Or(a.who(w, r.WithContext(ctx)), err)
	}
	reading, err := a.read(w, r, hash, asked.model, asked.userID)
	if err != nil {
		return attempt{}, err
	}
	if len(reading.Steps) == 0 {
		return attempt{}, noStep(reading.Plan)
	}
	if asked.followsUp { // at another step, the provider would not know what the request names
		reading.Steps = reading.Steps[:1]
	}
	t := ticket{Made: time.Now().UnixMilli(), Caller: hash, Model: asked.model, UserID: []byte(asked.userID)}
	for _, step := range reading.Steps {
		t.Steps = append(t.Steps, idOf(step))
	}
	return attempt{t, reading, reading.Steps[0]}, nil
}

// requested returns the content of the body, with the user of the header.
func (a *authorizer) requested(w http.ResponseWriter, r *http.Request) (content, error) {
	if r.Method != http.MethodPost {
		return content{}, &refusal{http.StatusNotFound, "unknown_call", nil}
	}
	asked, err := a.bodies.read(r.Context(), w, r)
	_, isTooLarge := errors.AsType[*http.MaxBytesError](err)
	users := r.Header.Values(a.config.UserIDHeader) // none if no header is configured
	asked.userID = strings.Join(users, "")
	switch {
	case isTooLarge, r.Header.Get(partialHeader) == "true":
		return content{}, &refusal{http.StatusRequestEntityTooLarge, "body_too_large", nil}
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded): // the router had the whole body
		return content{}, &refusal{http.StatusServiceUnavailable, "slow_body", err}
	case !slices.Contains([]string{"", "identity"}, r.Header.Get("Content-Encoding")):
		return content{}, &refusal{http.StatusBadRequest, "content_encoding", nil}
	case err != nil:
		return content{}, &refusal{http.StatusBadRequest, "malformed_body", nil}
	case len(users) > 1: // one of them may be the client's
		return content{}, &refusal{http.StatusBadRequest, "repeated_user_id", nil}
	case a.config.Models[asked.model] == nil:
		return content{}, &refusal{http.StatusNotFound, "unknown_model", nil}
	}
	return asked, nil
}

// read plans a request by the present rows. Steps for shared endpoints without a platform key
// are left out.
func (a *authorizer) read(w http.ResponseWriter, r *http.Request, caller ids.KeyHash, model, userID string) (*routing.Reading, error) {
	reading, err := a.reader.Read(r.Context(), caller, routing.Request{Model: model, UserID: userID, Providers: a.config.Models[model]})
	if err != nil {
		return nil, err
	}
	reading.Steps = slices.DeleteFunc(reading.Steps, func(s routing.Step) bool {
		return s.IsShared() && len(a.config.Providers[s.Provider].key.Reveal()) == 0
	})
	describe(w, model, reading)
	return reading, nil
}

// describe sets the headers for the router's log.
func describe(w http.ResponseWriter, model string, reading *routing.Reading) {
	w.Header().Set(modelHeader, model) // one of the configuration
	w.Header().Set(accountHeader, string(reading.Account))
	w.Header().Set(workspaceHeader, string(reading.Workspace))
	if text := skipped(reading.Plan); text != "" {
		w.Header().Set(skippedHeader, text)
	}
}

// skipped counts the credentials in no step by their reason, and the shared endpoints that
// credentials remove. It has no ids, because there may be hundreds.
func skipped(p routing.Plan) string {
	counts := map[string]int{}
	for _, s := range p.Skipped {
		counts[string(s.Reason)]++
	}
	if len(p.Removed) > 0 {
		counts["shared_endpoint"] = len(p.Removed)
	}
	var all []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, reason+" "+strconv.Itoa(counts[reason]))
	}
	return strings.Join(all, ", ")
}

// noStep refuses a request for which a plan has no step left.
func noStep(p routing.Plan) error {
	return &refusal{http.StatusForbidden, "no_step", errors.New("credentials in no step: " + cmp.Or(skipped(p), "none"))}
}
