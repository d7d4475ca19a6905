package main

import (
	"context"
	"strings"
	"sync/atomic"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"signalbox.dev/shared/calls"
)

// changes records whether a command, and the action that it is at, may have changed anything.
// An action ends with its audit line. It sees every attempt of every call.
type changes struct{ command, action attempts }

type attempts struct {
	applied atomic.Bool // one was accepted
	unclear atomic.Bool // a response was lost, or was a 5xx
}

func (a *attempts) tried() bool { return a.applied.Load() || a.unclear.Load() }

func (a *attempts) reset() {
	a.applied.Store(false)
	a.unclear.Store(false)
}

// readOnly has the first words of the operations that change nothing.
var readOnly = []string{"Get", "Head", "List", "Query", "Scan", "BatchGet", "Describe", "ReEncrypt"}

// watch adds a middleware to an operation of the SDK, between the retries and the network. It
// records the outcome of each attempt that may change something.
func (c *changes) watch(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("WatchChanges",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleDeserialize(ctx, in)
			for _, prefix := range readOnly {
				if strings.HasPrefix(awsmiddleware.GetOperationName(ctx), prefix) {
					return out, metadata, err
				}
			}
			status := 0 // there is no response
			if response, ok := out.RawResponse.(*smithyhttp.Response); ok {
				status = response.StatusCode
			}
			switch {
			case err == nil:
				c.command.applied.Store(true)
				c.action.applied.Store(true)
			case status/100 == 4 || status == 0 && calls.IsUnsent(err):
			default:
				c.command.unclear.Store(true)
				c.action.unclear.Store(true)
			}
			return out, metadata, err
		}), middleware.Before)
}
