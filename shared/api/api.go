// Package api is the adapter between API Gateway and an operation: it reads the event,
// authenticates the caller, runs the operation, and writes the response, the error
// envelope and the log line. No other package depends on API Gateway.
//
// infra/openapi.yaml defines the order of checks: the key (401), its kind (401 or 403),
// then the operation. An operation's Act takes an auth.Caller, so it cannot run for an
// unknown caller. Any unexpected error, a panic included, is a 500 in the envelope. Its
// cause is logged and not returned.
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
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/secret"
)

// reserve is the part of Lambda's time kept for the response. A request that runs out
// of time gets our 500, not the gateway's.
const reserve = 500 * time.Millisecond

// Operation is one operation of the API.
type Operation struct {
	ID       string // operationId in infra/openapi.yaml
	Method   string
	Resource string // the gateway's resource path, such as /api/v1/files/{file_id}

	// StandardKeyError refuses a standard key. It is nil if every key may call.
	StandardKeyError *Error
	// Audited operations write an audit line for every authenticated caller.
	Audited bool
	// Prepare runs side by side with the look-up of the calling key, so the caller is
	// not authenticated yet. Prepare may read, and may count requests of the key's
	// hash. It must not change or return anything of an account. Only the Act that it
	// returns may use its results and errors.
	Prepare func(context.Context, *Request) Act
}

// misrouted returns the reason why the gateway would not send this event to the
// operation, or "". It repeats nothing of the event.
func (o Operation) misrouted(r *Request) string {
	switch {
	case r.method == "":
		return "httpMethod is missing"
	case r.resource == "":
		return "resource is missing"
	case r.method != o.Method:
		return "httpMethod is not " + o.Method
	case r.resource != o.Resource:
		return "resource is not " + o.Resource
	}
	return ""
}

// Act carries the operation out for an authenticated caller. An *Error is returned
// to the caller; any other error is a 500 without detail.
type Act func(context.Context, auth.Caller) (Response, error)

// Response is a successful response.
type Response struct {
	Status int
	Header map[string]string
	Body   []byte // JSON, or empty
}

// Verifier authenticates keys.
type Verifier interface {
	// Verify returns an *auth.Rejection if the key is not valid, and any other error if
	// the look-up failed.
	Verify(context.Context, ids.KeyHash) (auth.Caller, error)
}

// Handler makes an operation a Lambda function. Its Invoke never returns an error,
// because the gateway would answer 502 without the envelope.
func Handler(keys Verifier, log *slog.Logger, op Operation) lambda.Handler {
	return &handler{keys: keys, log: log, op: op}
}

type handler struct {
	keys Verifier
	log  *slog.Logger
	op   Operation
}

// Invoke implements lambda.Handler. It overwrites the event, which may contain a
// provider key, before it returns.
func (h *handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	defer clear(payload)
	start := time.Now()
	ctx, count := calls.Start(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-reserve))
		defer cancel()
	}
	r, err := readRequest(payload)
	var response Response
	if err == nil {
		defer r.body.Wipe()
		response, err = h.serve(ctx, r)
	}
	if err != nil {
		response = respond(err, r.id)
	}
	h.record(ctx, r, outcome{status: response.Status, err: err, took: time.Since(start), calls: count.Made()})
	return encode(response, r.id), nil
}

// serve handles one request.
func (h *handler) serve(ctx context.Context, r *Request) (response Response, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = calls.Recovered(v)
		}
	}()
	if r.misrouted = h.op.misrouted(r); r.misrouted != "" {
		return Response{}, NotFound()
	}
	if r.bearer, err = auth.ParseBearer(r.Header("Authorization")); err != nil {
		return Response{}, rejected(err)
	}
	var caller calls.Result[auth.Caller]
	var act calls.Result[Act]
	calls.Together(ctx,
		caller.Of(func(ctx context.Context) (auth.Caller, error) { return h.keys.Verify(ctx, r.Key()) }),
		act.Of(func(ctx context.Context) (Act, error) { return h.op.Prepare(ctx, r), nil }),
	)
	if caller.Err != nil {
		return Response{}, rejected(caller.Err)
	}
	r.caller, r.known = caller.Value, true
	if h.op.StandardKeyError != nil && !r.caller.MayManage() {
		return Response{}, h.op.StandardKeyError
	}
	return act.Value(ctx, r.caller)
}

// rejected turns an authentication error into the error that the caller gets.
func rejected(err error) error {
	rejection, ok := errors.AsType[*auth.Rejection](err)
	if !ok {
		return fmt.Errorf("authenticating the caller: %w", err)
	}
	return Unauthenticated(rejection.Reason).Because(rejection.Damage)
}

// Request holds the caller's input, which is not trusted, and the caller once it is verified.
type Request struct {
	id, sourceIP     string
	method, resource string
	path, stage      members
	query            map[string][]string
	header           http.Header
	body             secret.Bytes

	bearer auth.Bearer
	caller auth.Caller
	known  bool // the caller is authenticated
	notes  []slog.Attr
	// misrouted is the reason why the event is not for the operation, or "".
	misrouted string
}

// Path returns a parameter of the path, undecoded. It returns "" unless there is
// exactly one value.
func (r *Request) Path(name string) string { return r.path.single(name) }

// Query returns every value of a query parameter.
func (r *Request) Query(name string) []string { return r.query[name] }

// Header returns every value of a header. The case of its name does not matter.
func (r *Request) Header(name string) []string { return r.header.Values(name) }

// StageVariable returns a setting of the deployment that the gateway passes on. It
// returns "" unless there is exactly one value.
func (r *Request) StageVariable(name string) string { return r.stage.single(name) }

// Key returns the hash of the caller's key.
func (r *Request) Key() ids.KeyHash { return r.bearer.Hash() }

// Bearer returns the caller's key itself, to derive other keys from.
func (r *Request) Bearer() auth.Bearer { return r.bearer }

// Note adds to the request's log line, and to its audit line if it has one. Only ids of
// this service, counts and fixed words may be in it.
func (r *Request) Note(attrs ...slog.Attr) { r.notes = append(r.notes, attrs...) }
