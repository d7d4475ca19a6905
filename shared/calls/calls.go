// Package calls handles all calls to AWS:
//
//   - calls.go counts them
//   - parallel.go runs them in parallel
//   - responses.go refuses malformed responses
//   - errors.go classifies errors, and describes them without AWS's own text
//   - retry.go repeats failed calls
//   - items.go reads and encodes DynamoDB's items
package calls

import (
	"context"
	"sync/atomic"

	"github.com/aws/smithy-go/middleware"
)

// Count counts the calls of one request.
type Count struct{ made atomic.Int64 }

type countKey struct{}

// Start counts the calls made under the context it returns.
func Start(ctx context.Context) (context.Context, *Count) {
	c := new(Count)
	return context.WithValue(ctx, countKey{}, c), c
}

// Made is how many calls were sent to AWS, retries included.
func (c *Count) Made() int64 { return c.made.Load() }

// CountAttempts is an API option for SDK clients: it counts every attempt, since a retry is a
// call too.
func CountAttempts(stack *middleware.Stack) error {
	count := middleware.FinalizeMiddlewareFunc("CountCalls",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			if c, ok := ctx.Value(countKey{}).(*Count); ok {
				c.made.Add(1)
			}
			return next.HandleFinalize(ctx, in)
		})
	return stack.Finalize.Insert(count, "Retry", middleware.After)
}
