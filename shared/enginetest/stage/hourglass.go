package stage

import (
	"context"
	"sync"
	"time"
)

// hourglass is a request's time as Lambda gives it, except that it runs out when
// a test says so: nothing depends on how fast the machine is.
type hourglass struct {
	context.Context

	end  sync.Once
	done chan struct{}
}

func newHourglass(parent context.Context) *hourglass {
	return &hourglass{Context: parent, done: make(chan struct{})}
}

func (h *hourglass) runOut() { h.end.Do(func() { close(h.done) }) }

// Deadline implements context.Context.
func (h *hourglass) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }

// Done implements context.Context.
func (h *hourglass) Done() <-chan struct{} { return h.done }

// Err implements context.Context.
func (h *hourglass) Err() error {
	select {
	case <-h.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
