package acts

import (
	"context"
	"strings"
	"sync/atomic"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"signalbox.dev/shared/calls"
)

// attempts records whether the calls under a context may have changed anything.
type attempts struct {
	applied atomic.Bool // one was accepted
	unclear atomic.Bool // a response was lost, or was a 5xx
	whole   *attempts   // of the change of which this one is a part, or nil
}

type attemptsKey struct{}

// Watched returns a context that records whether the calls under it change something.
func Watched(ctx context.Context) context.Context {
	whole, _ := ctx.Value(attemptsKey{}).(*attempts)
	return context.WithValue(ctx, attemptsKey{}, &attempts{whole: whole})
}

// of returns the record of the context, an empty one if it is not Watched.
func of(ctx context.Context) *attempts {
	if a, ok := ctx.Value(attemptsKey{}).(*attempts); ok {
		return a
	}
	return &attempts{}
}

// Tried reports whether a call under the Watched context may have changed something.
func Tried(ctx context.Context) bool {
	a := of(ctx)
	return a.applied.Load() || a.unclear.Load()
}

// readOnly has the first words of the operations that change nothing.
var readOnly = []string{"Get", "Head", "List", "Query", "Scan", "BatchGet", "Describe", "ReEncrypt"}

// Watch is an API option for SDK clients. It records the outcome of each attempt that may change
// something, between the retries and the network.
func Watch(stack *middleware.Stack) error {
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
			for a := of(ctx); a != nil; a = a.whole {
				switch {
				case err == nil:
					a.applied.Store(true)
				case status/100 == 4 || status == 0 && calls.IsUnsent(err):
				default:
					a.unclear.Store(true)
				}
			}
			return out, metadata, err
		}), middleware.Before)
}
