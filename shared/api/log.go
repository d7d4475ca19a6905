package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"signalbox.dev/shared/calls"
)

// outcome is how a request ended.
type outcome struct {
	status int
	err    error
	took   time.Duration
	calls  int64 // to AWS
}

// record writes the request's log line, and its audit line if the operation has one.
// Metric filters in the template read these fields by name.
func (h *handler) record(ctx context.Context, r *Request, o outcome) {
	who := r.who(ctx)
	attrs := append([]slog.Attr{
		slog.String("operation", h.op.ID),
		slog.String("route", h.op.Method+" "+h.op.Resource),
		slog.Int("status", o.status),
		slog.Float64("duration_ms", float64(o.took.Microseconds())/1000),
		slog.Int64("aws_calls", o.calls),
	}, who...)
	level := slog.LevelInfo
	if r.misrouted != "" {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("event", r.misrouted))
	}
	if e, ok := errors.AsType[*Error](o.err); ok && e.reason != "" {
		attrs = append(attrs, slog.String("reason", string(e.reason)))
	}
	if cause := causeOf(o.err); cause != nil {
		level = slog.LevelError
		attrs = append(attrs, slog.Attr{Key: "error", Value: calls.Describe(cause)})
		if errors.Is(cause, calls.ErrDamaged) {
			attrs = append(attrs, slog.Bool("stored", true))
		}
		if p, ok := errors.AsType[calls.Panic](cause); ok {
			attrs = append(attrs, slog.String("stack", string(p.Stack)))
		}
	}
	h.log.LogAttrs(ctx, level, "request", append(attrs, r.notes...)...)
	if h.op.Audited && r.known {
		h.audit(ctx, r, o.status, who)
	}
}

// causeOf returns the error behind a 500, or the damage of a stored row that led to a
// 400, 401 or 404. An operator must look into it.
func causeOf(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.cause
	}
	return err
}

// audit logs the caller, the act, the source address and the outcome.
func (h *handler) audit(ctx context.Context, r *Request, status int, who []slog.Attr) {
	ending := "refused"
	switch {
	case status < http.StatusMultipleChoices:
		ending = "done"
	case status == http.StatusInternalServerError:
		ending = "uncertain" // a retry finishes or repeats the operation
	}
	attrs := append([]slog.Attr{
		slog.String("operation", h.op.ID),
		slog.String("outcome", ending),
		slog.Int("status", status),
		slog.String("source_ip", r.sourceIP),
	}, who...)
	h.log.LogAttrs(ctx, slog.LevelInfo, "audit", append(attrs, r.notes...)...)
}

// who identifies the request, by the gateway's id and Lambda's, and the caller: by the
// key's hash if a key was sent, and by the account once the caller is authenticated.
func (r *Request) who(ctx context.Context) []slog.Attr {
	attrs := []slog.Attr{slog.String("request_id", r.id)}
	if lambda, ok := lambdacontext.FromContext(ctx); ok {
		attrs = append(attrs, slog.String("lambda_request_id", lambda.AwsRequestID))
	}
	if key := r.Key(); key != "" {
		attrs = append(attrs, slog.String("key", key.Short()))
	}
	if r.known {
		attrs = append(attrs, slog.String("account", string(r.caller.Account())))
	}
	return attrs
}
