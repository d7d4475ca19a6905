// Package calls handles all calls to AWS: they are counted and run in parallel
// (calls.go); malformed responses are refused, and errors are classified and described
// without AWS's own text (errors.go); failed calls are repeated (retry.go).
//
// Only Together runs calls in parallel, so that a panic in a call stays the request's own.
package calls

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
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

// Made is how many requests were sent to AWS, retries included.
func (c *Count) Made() int64 { return c.made.Load() }

// Panic is a recovered panic with the stack of its goroutine. If a function panics,
// Together panics in its caller with a Panic.
type Panic struct {
	Value any
	Stack []byte
}

// Recovered makes a Panic of a recovered value. If v is a Panic already, it is unchanged.
func Recovered(v any) Panic {
	if inner, ok := v.(Panic); ok {
		return inner
	}
	return Panic{Value: v, Stack: debug.Stack()}
}

// Error contains the value only if the Go runtime made it: any other may contain
// part of a request.
func (p Panic) Error() string {
	if known, ok := p.Value.(runtime.Error); ok {
		return "panic: " + known.Error()
	}
	return fmt.Sprintf("panic: %T", p.Value)
}

// Together runs fs in parallel and returns when all have returned. A panic in a branch
// continues in the caller, as a Panic.
func Together(ctx context.Context, fs ...func(context.Context)) {
	var (
		group    sync.WaitGroup
		panicked atomic.Pointer[Panic]
	)
	for i, f := range fs {
		run := func() {
			defer func() {
				if v := recover(); v != nil {
					p := Recovered(v)
					panicked.CompareAndSwap(nil, &p)
				}
			}()
			f(ctx)
		}
		if i < len(fs)-1 {
			group.Go(run)
		} else {
			run() // on this goroutine: its stack has grown for the SDK's calls already
		}
	}
	group.Wait()
	if p := panicked.Load(); p != nil {
		panic(*p) //nolint:forbidigo // not a new panic; the adapter recovers it
	}
}

// Counted is an API option for SDK clients: it counts every attempt, since a retry is a
// call too.
func Counted(stack *middleware.Stack) error {
	count := middleware.FinalizeMiddlewareFunc("CountCalls",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			if c, ok := ctx.Value(countKey{}).(*Count); ok {
				c.made.Add(1)
			}
			return next.HandleFinalize(ctx, in)
		})
	return stack.Finalize.Insert(count, "Retry", middleware.After)
}
