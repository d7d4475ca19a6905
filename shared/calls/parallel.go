package calls

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

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

// Result is the result of a call that Together makes.
type Result[T any] struct {
	Value T
	Err   error
}

// ResultOf is the result of a call that was made.
func ResultOf[T any](value T, err error) Result[T] { return Result[T]{value, err} }

// Of returns a function for Together that makes the call and fills the result.
func (r *Result[T]) Of(call func(context.Context) (T, error)) func(context.Context) {
	return func(ctx context.Context) { r.Value, r.Err = call(ctx) }
}

// Together runs fs in parallel and returns when all have returned. A panic in a branch
// continues in the caller, as a Panic: so it stays the request's own. Nothing else runs calls
// in parallel.
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
