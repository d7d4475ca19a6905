package load

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// callers ask at once when it is measured what the machine can do.
const callers = 16

// measure finds how many requests a second the machine can answer at the moment.
// Machines are shared: what follows is held against that. Each caller sends its
// next request when it has its answer.
func (r *run) measure(ctx context.Context) (float64, error) {
	p := &Phase{Name: capacity, Duration: min(measuring, r.Sustained), Shedding: true}
	r.begin(p)
	var drawing sync.Mutex
	draw := func() request {
		drawing.Lock()
		defer drawing.Unlock()
		return r.scene.draw()
	}
	end := p.begun.Add(p.Duration)
	var all errgroup.Group
	for range callers {
		all.Go(func() error {
			for due := time.Now(); due.Before(end) && ctx.Err() == nil; due = time.Now() {
				q := draw()
				p.answered(q.operation, due, q.send(ctx).Status)
			}
			return ctx.Err()
		})
	}
	err := all.Wait()
	// Instances of functions are started at first.
	later := 0
	for _, s := range p.samples {
		if s.due >= p.Duration/2 {
			later++
		}
	}
	p.Rate = float64(later) / (p.Duration / 2).Seconds()
	return max(p.Rate, 1), err
}
