// Package load sends requests on a fixed schedule, as callers do who do not know
// of each other: however slow the service becomes, the next request is due, and
// its latency counts from the instant at which it was due. First at a rate that
// must be served without one error and in memory that does not grow; then at
// many times that, when requests may be refused, but only in the envelope; then
// at the first rate again, to see how soon everything is well. At the end storage
// is held to what callers were told.
package load

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/torture/ledger"
	"signalbox.dev/infra/torture/service"
)

const (
	// highestRate is what is asked of a quiet machine where nothing else was said,
	// and reserve how many times the sustained rate a machine can do at the least:
	// others may need it too.
	highestRate = 150
	reserve     = 5
	// overloadFactor is how many times the sustained rate is sent in overload, or
	// excess times what the machine can do, if that is more.
	overloadFactor = 10
	excess         = 4
	// settlingFactor slows what is asked again at the end: creates are dearer than
	// the mix.
	settlingFactor = 3
	// measuring is how long it is measured what the machine can do. Instances of
	// functions start meanwhile.
	measuring = 5 * time.Second
	// maxOutstanding bounds the requests without an answer, so that it is not this
	// process which fails in overload.
	maxOutstanding = 4000
)

// Config says how long to go on, and how fast.
type Config struct {
	// Service was started with Parameters, and nobody else uses it.
	Service *service.Service
	Seed    uint64
	// Sustained, Overload and Recovery are how long the phases last.
	Sustained, Overload, Recovery time.Duration
	// Rate is requests a second of the sustained phase. Zero means 150, or a fifth
	// of what the machine can do, if that is less. Much more would meet the throttle
	// of Parameters.
	Rate float64
	// Progress is told which phase begins. Nil means nobody is.
	Progress io.Writer
}

// Parameters are those of the template that the phases need: above the sustained
// rate, below the overload, and more together than two cores can do, so that
// overload meets the throttle and the end of the machine's power as well.
func Parameters() map[string]string {
	return map[string]string{
		"DeleteRatePerMinute":        "1000000",
		"DeleteBurst":                "100000",
		"GetSyncJobThrottleRate":     "500",
		"GetSyncJobThrottleBurst":    "500",
		"CreateByokKeyThrottleRate":  "250",
		"CreateByokKeyThrottleBurst": "250",
		"DeleteFileThrottleRate":     "250",
		"DeleteFileThrottleBurst":    "250",
	}
}

// Result is what came of it.
type Result struct {
	// Phases are capacity, sustained, overload and recovery; then settling, where
	// something had to be asked again.
	Phases   []*Phase
	Memory   []Memory
	Recovery Recovery
	// Audit is what storage holds, compared with what callers were told.
	Audit ledger.Report
	// Broken are the promises that were not kept, the audit's included.
	Broken []string
}

// Run goes through all phases. Its error is that of the machinery; what the
// service did wrong is in the result.
func Run(ctx context.Context, c Config) (Result, error) {
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	s, err := furnish(ctx, c)
	if err != nil {
		return Result{}, err
	}
	r := run{Config: c, scene: s}
	err = r.all(ctx)
	return r.result, err
}

// run is one course through the phases.
type run struct {
	Config
	scene   *scene
	watcher watcher
	result  Result
}

func (r *run) all(ctx context.Context) error {
	if err := r.storm(ctx); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	r.say("auditing")
	var err error
	if r.result.Audit, err = r.scene.ledger.Audit(ctx, r.Service.Stack()); err != nil {
		return err
	}
	r.judge()
	return nil
}

// storm goes through the phases, while files are stored and memory is watched.
func (r *run) storm(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	aside, stop := context.WithCancel(ctx)
	group.Go(func() error { return r.scene.restock(aside) })
	group.Go(func() error { r.watcher.watch(aside, r.Service); return nil })
	group.Go(func() error {
		defer stop()
		return r.phases(ctx)
	})
	return group.Wait()
}

// phases sends the mix, and waits for every answer.
func (r *run) phases(ctx context.Context) error {
	can, err := r.measure(ctx)
	if err != nil {
		return err
	}
	if r.Rate == 0 {
		r.Rate = min(highestRate, can/reserve)
	}
	g := newGenerator(maxOutstanding)
	defer g.wait()
	for _, p := range []*Phase{
		{Name: sustained, Rate: r.Rate, Duration: r.Sustained},
		{Name: overload, Rate: max(r.Rate*overloadFactor, can*excess), Duration: r.Overload, Shedding: true},
		// What overload has left in line may still be in the way.
		{Name: recovery, Rate: r.Rate, Duration: r.Recovery, Shedding: true},
	} {
		r.begin(p)
		if err := g.run(ctx, p, r.scene.draw); err != nil {
			return err
		}
	}
	return nil
}

// settle asks again for whatever got no certain answer and may be asked for
// again: it must come to the same end as if nothing had been in its way.
func (r *run) settle(ctx context.Context) error {
	again := r.scene.unsettled()
	if len(again) == 0 {
		return nil
	}
	rate := r.Rate / settlingFactor
	p := &Phase{Name: settling, Rate: rate, Duration: time.Duration(float64(len(again)) / rate * float64(time.Second))}
	r.begin(p)
	g := newGenerator(maxOutstanding)
	defer g.wait()
	next := 0
	return g.run(ctx, p, func() request {
		next++
		return again[next-1]
	})
}

func (r *run) begin(p *Phase) {
	p.begun = time.Now()
	r.result.Phases = append(r.result.Phases, p)
	r.say(p.String())
}

// say tells how far it is. That nobody can be told is not the service's fault.
func (r *run) say(text string) { _, _ = fmt.Fprintln(r.Progress, text) }

func (r *run) phase(name string) *Phase {
	i := slices.IndexFunc(r.result.Phases, func(p *Phase) bool { return p.Name == name })
	return r.result.Phases[i]
}

// judge puts together what was measured, and what of it is not as promised.
func (r *run) judge() {
	steady := r.phase(sustained)
	r.result.Memory = r.watcher.judge(steady.begun, steady.begun.Add(steady.Duration))
	r.result.Recovery = r.phase(recovery).recovered(2 * steady.All().Quantile(99))
	for _, p := range r.result.Phases {
		r.result.Broken = append(r.result.Broken, p.broken()...)
	}
	for _, m := range r.result.Memory {
		if m.Grows() {
			r.result.Broken = append(r.result.Broken, m.Role+" grows: "+m.String())
		}
	}
	r.result.Broken = append(r.result.Broken, r.result.Recovery.broken()...)
	r.result.Broken = append(r.result.Broken, r.result.Audit.Broken...)
}
