package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// changes records whether a command may have changed anything. It sees every attempt of
// every call.
type changes struct {
	applied atomic.Bool // a write was accepted
	unclear atomic.Bool // the response to a write was lost, or was a 5xx
}

// tried reports whether anything may have been changed.
func (c *changes) tried() bool { return c.applied.Load() || c.unclear.Load() }

// readOnly has the first words of the operations that change nothing.
var readOnly = []string{"Get", "Head", "List", "Query", "Scan", "BatchGet", "Describe", "ReEncrypt"}

// note adds a middleware to an operation of the SDK, between the retries and the network.
func (c *changes) note(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("NoteChanges",
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
				c.applied.Store(true)
			case status/100 == 4 || status == 0 && unsent(err):
			default:
				c.unclear.Store(true)
			}
			return out, metadata, err
		}), middleware.Before)
}

// unsent reports whether an attempt found no connection, so that no service got it.
func unsent(err error) bool {
	network, ok := errors.AsType[*net.OpError](err)
	return ok && network.Op == "dial"
}
