package load

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/torture/caller"
)

// request is one that was drawn.
type request struct {
	operation operation
	// send sends it, and notes the answer where it must be remembered.
	send func(context.Context) caller.Answer
}

// generator is an open loop: what is due is sent, whatever became of earlier
// requests.
type generator struct{ outstanding errgroup.Group }

func newGenerator(outstanding int) *generator {
	g := &generator{}
	g.outstanding.SetLimit(outstanding)
	return g
}

// run sends a phase's requests. Some may be without an answer when it returns.
func (g *generator) run(ctx context.Context, p *Phase, draw func() request) error {
	return pace(ctx, p.Rate, p.Duration, func(due time.Time) {
		r := draw()
		sent := g.outstanding.TryGo(func() error {
			a := r.send(ctx)
			p.answered(r.operation, due, a.Status)
			return nil
		})
		if !sent {
			p.skipped(r.operation, due)
		}
	})
}

// wait waits for the answers that are missing.
func (g *generator) wait() { _ = g.outstanding.Wait() } // nothing that it runs fails

// pace calls at for each instant of a schedule. An instant that was missed, as
// the machine was busy, is made up for at once and keeps its own time.
func pace(ctx context.Context, rate float64, duration time.Duration, at func(due time.Time)) error {
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	sleep := func(until time.Time) error {
		timer.Reset(time.Until(until))
		select {
		case <-timer.C:
			return ctx.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for i := range int(rate*duration.Seconds() + 0.5) {
		due := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		if err := sleep(due); err != nil {
			return err
		}
		at(due)
	}
	return sleep(start.Add(duration))
}
