package functest

import (
	"context"
	"sync"
	"time"
)

// manualDeadline is a request's time as Lambda gives it, except that it runs out when
// a test says so: nothing depends on how fast the machine is.
type manualDeadline struct {
	context.Context

	end  sync.Once
	done chan struct{}
}

func newManualDeadline(parent context.Context) *manualDeadline {
	return &manualDeadline{Context: parent, done: make(chan struct{})}
}

func (h *manualDeadline) runOut() { h.end.Do(func() { close(h.done) }) }

// Deadline implements context.Context.
func (h *manualDeadline) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }

// Done implements context.Context.
func (h *manualDeadline) Done() <-chan struct{} { return h.done }

// Err implements context.Context.
func (h *manualDeadline) Err() error {
	select {
	case <-h.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
