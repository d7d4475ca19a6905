// Package api is the one adapter between API Gateway and an operation: it
// reads the event, finds out who calls, lets the operation act, and writes the
// answer, the error envelope and the log line. It is the only package that
// knows API Gateway.
//
// The order is the contract's: 401, then who may, then the operation. An
// operation's Act takes an auth.Caller, so it cannot run for anybody unknown.
// Whatever goes wrong in a way nobody expected, a panic included, is one 500 in
// the envelope whose cause is logged and not shown.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/secret"
)

// reserve is the part of Lambda's time kept back, so that a request that ran
// out of it is answered by us and not by the gateway.
const reserve = 500 * time.Millisecond

// Operation is one operation of the API.
type Operation struct {
	ID       string // operationId, as in the contract
	Method   string
	Resource string // the gateway's resource path, such as /api/v1/files/{file_id}

	// StandardKeyError refuses a standard key; nil where every key may call.
	StandardKeyError *Error
	// Audited operations write an audit line for every caller who may.
	Audited bool
	// Prepare runs side by side with the look-up of the calling key, so nothing
	// is known of the caller but the key's hash: it may look things up, and must
	// not change or tell anything on the caller's behalf. What it found, its
	// errors included, is for the Act it returns.
	Prepare func(context.Context, *Request) Act
}

// Act carries an operation out for a caller who may. An *Error is told to the
// caller; any other error is a 500 that says nothing.
type Act func(context.Context, auth.Caller) (Response, error)

// Response is a successful answer.
type Response struct {
	Status int
	Header map[string]string
	Body   []byte // JSON, or empty
}

// Verifier tells who holds a key.
type Verifier interface {
	// Verify returns an *auth.Rejection where the key is not let in, any other
	// error where that could not be found out.
	Verify(context.Context, auth.KeyHash) (auth.Caller, error)
}

// Handler makes an operation a Lambda function. It never returns an error: an
// error of a function is a bare 502 to whoever called.
func Handler(keys Verifier, log *slog.Logger, op Operation) lambda.Handler {
	return &handler{keys: keys, log: log, op: op, now: time.Now}
}

type handler struct {
	keys Verifier
	log  *slog.Logger
	op   Operation
	now  func() time.Time
}

// Invoke implements lambda.Handler. It overwrites the event, which may hold a
// provider key, before it returns.
func (h *handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	defer clear(payload)
	start := h.now()
	ctx, count := calls.Start(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-reserve))
		defer cancel()
	}
	r, err := readRequest(payload)
	var answer Response
	if err == nil {
		defer r.body.Wipe()
		answer, err = h.serve(ctx, r)
	}
	if err != nil {
		answer = respond(err, r.id)
	}
	h.record(ctx, r, answer.Status, err, h.now().Sub(start), count)
	return encodeAnswer(answer, r.id), nil
}

// serve answers one request.
func (h *handler) serve(ctx context.Context, r *Request) (answer Response, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	if r.method != h.op.Method || r.resource != h.op.Resource {
		return Response{}, NotFound()
	}
	if r.bearer, err = auth.ParseBearer(r.Header("Authorization")); err != nil {
		return Response{}, rejected(err)
	}
	var act Act
	calls.Together(ctx,
		func(ctx context.Context) { r.caller, err = h.keys.Verify(ctx, r.Key()) },
		func(ctx context.Context) { act = h.op.Prepare(ctx, r) },
	)
	if err != nil {
		return Response{}, rejected(err)
	}
	r.known = true
	if h.op.StandardKeyError != nil && !r.caller.MayManage() {
		return Response{}, h.op.StandardKeyError
	}
	return act(ctx, r.caller)
}

// rejected turns the error of a look-up of the caller into what the caller is told.
func rejected(err error) error {
	var rejection *auth.Rejection
	if !errors.As(err, &rejection) {
		return fmt.Errorf("finding out who calls: %w", err)
	}
	e := Unauthenticated(rejection.Reason)
	e.cause = rejection.Fault
	return e
}

// Request is what the caller sent, none of it to be trusted.
type Request struct {
	id, sourceIP     string
	method, resource string
	path, stage      members
	query            map[string][]string
	header           http.Header
	body             secret.Bytes

	bearer auth.Bearer
	caller auth.Caller
	known  bool // the caller was let in
	notes  []slog.Attr
}

// Path is a parameter of the path, as the gateway hands it over: undecoded. It
// is "" where the parameter has more than one value.
func (r *Request) Path(name string) string { return r.path.single(name) }

// Query is every value of a query parameter.
func (r *Request) Query(name string) []string { return r.query[name] }

// Header is every value of a header, whatever the case of its name.
func (r *Request) Header(name string) []string { return r.header.Values(name) }

// StageVariable is a setting of the deployment that the gateway passes on, or ""
// where it has not exactly one value.
func (r *Request) StageVariable(name string) string { return r.stage.single(name) }

// Key is the hash of the key the request came with.
func (r *Request) Key() auth.KeyHash { return r.bearer.Hash() }

// Bearer is the key itself, for what is derived from it.
func (r *Request) Bearer() auth.Bearer { return r.bearer }

// Note adds to the request's log line, and to its audit line where it has one.
// Only ids of ours, counts and fixed words belong there.
func (r *Request) Note(attrs ...slog.Attr) { r.notes = append(r.notes, attrs...) }
