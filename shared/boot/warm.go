package boot

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"signalbox.dev/shared/calls"
)

// warmUpTime bounds the whole warm-up; the first request then opens what is
// missing.
const warmUpTime = time.Second

// Connect is an API option of the SDK's that lets a call go no further than its
// endpoint.
type Connect = func(*middleware.Stack) error

// WarmUp makes any one SDK call under the API option it is given.
type WarmUp func(context.Context, Connect) error

// WarmUp opens one connection for each of the calls during the init phase, all
// side by side: name resolution, TCP, TLS and the parsing of root certificates
// are then done before the first request. What goes wrong is ignored.
func (e *Environment) WarmUp(warmUps ...WarmUp) {
	e.warmUps = append(e.warmUps, warmUps...)
}

func (e *Environment) warm() {
	ctx, cancel := context.WithTimeout(context.Background(), warmUpTime)
	defer cancel()
	var opened []func(context.Context)
	for _, w := range e.warmUps {
		opened = append(opened, func(ctx context.Context) { _ = w(ctx, e.onlyConnect) })
	}
	calls.Together(ctx, opened...)
}

// errConnected ends a call that was only meant to open its connection.
var errConnected = errors.New("connected")

// onlyConnect is an API option that sends, in place of the call, an unsigned GET
// to the endpoint the call resolved to. The connection stays in the pool of the
// client that the calls share.
func (e *Environment) onlyConnect(stack *middleware.Stack) error {
	connect := middleware.FinalizeMiddlewareFunc("OnlyConnect",
		func(ctx context.Context, in middleware.FinalizeInput, _ middleware.FinalizeHandler) (out middleware.FinalizeOutput, md middleware.Metadata, err error) {
			call, ok := in.Request.(*smithyhttp.Request)
			if !ok {
				return out, md, errors.New("not an HTTP call")
			}
			get, err := http.NewRequestWithContext(ctx, http.MethodGet, call.URL.Scheme+"://"+call.URL.Host+"/", nil)
			if err != nil {
				return out, md, err
			}
			answer, err := e.AWS.HTTPClient.Do(get)
			if err != nil {
				return out, md, err
			}
			// A body that was read to its end gives the connection back.
			_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
			_ = answer.Body.Close()
			return out, md, errConnected
		})
	if _, err := stack.Finalize.Remove("Retry"); err != nil {
		return err
	}
	return stack.Finalize.Insert(connect, "ResolveEndpointV2", middleware.After)
}
