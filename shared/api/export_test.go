package api

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"signalbox.dev/shared/secret"
)

// NewRequest is a request with this body and these headers, as name, value, …;
// without headers it has a Content-Type that fits.
func NewRequest(body string, header ...string) *Request {
	r := &Request{header: http.Header{}, body: secret.New([]byte(body))}
	if header == nil {
		r.header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.header.Add(header[i], header[i+1])
	}
	return r
}

// HandlerAt is Handler with a clock.
func HandlerAt(keys Verifier, log *slog.Logger, op Operation, now func() time.Time) lambda.Handler {
	return &handler{keys: keys, log: log, op: op, now: now}
}
