// Package crash sends a stream of requests to a service while it is being killed
// (Run) or sent more than it can serve (Overload). Afterwards nothing that was
// acknowledged may be lost, nothing that was refused may be stored, and a request
// without a certain answer must be stored whole or not at all.
package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/torture/ledger"
	"signalbox.dev/infra/torture/service"
)

const (
	// clients send one request after the other while processes are killed.
	clients = 8
	// crowd is how many do so in overload: more than two cores can serve.
	crowd = 96
	// throttle is the gateway's rate in the first half of overload, for each
	// operation and second.
	throttle = 40
	// enough requests were sent, and a function and an engine killed, before time
	// may be up.
	enough = 100
)

// Config is one run.
type Config struct {
	// Root is the repository's folder, State an empty one.
	Root, State string
	// Versioning is the template's FilesVersioning; "" means its default.
	Versioning string
	Seed       uint64
	// Duration is how long it kills at the least: it goes on until there was enough
	// to kill.
	Duration time.Duration
}

// Result counts what happened.
type Result struct {
	service.Kills
	Requests, Throttled int
	ledger.Report
}

// Run kills functions, engines and the whole edition while clients use it.
func Run(ctx context.Context, c Config) (Result, error) {
	return run(ctx, c, service.Throttled(service.Unthrottled, c.parameters()), func(f *fixture, result *Result) error {
		during, end := context.WithCancel(ctx)
		defer end()
		var all sync.WaitGroup
		f.start(during, &all, clients)
		all.Go(func() { f.hammer(during) })
		k := service.Killer{Service: f.service, Random: source(c.Seed, clients)}
		var err error
		for again := true; again; again = err == nil && ctx.Err() == nil && (result.Functions == 0 || result.Engines == 0 || f.requests.Load() < enough) {
			spell, endSpell := context.WithTimeout(ctx, c.Duration)
			result.Kills, err = k.Run(spell)
			endSpell()
		}
		end()
		all.Wait()
		return err
	})
}

// Overload sends far more than the gateway's throttle passes, and then, without a
// throttle, more than the machine can serve.
func Overload(ctx context.Context, c Config) (Result, error) {
	return run(ctx, c, service.Throttled(throttle, c.parameters()), func(f *fixture, _ *Result) error {
		f.overloaded = true
		for range 2 {
			during, end := context.WithTimeout(ctx, c.Duration/2)
			var all sync.WaitGroup
			f.start(during, &all, crowd)
			all.Wait()
			end()
			f.service.SetParameters(service.Throttled(service.Unthrottled, c.parameters()))
			if err := f.service.Restart(ctx); err != nil {
				return err
			}
		}
		f.overloaded = false
		return nil
	})
}

func (c Config) parameters() map[string]string {
	parameters := map[string]string{
		"DeleteRatePerMinute": fmt.Sprint(ratePerMinute),
		"DeleteBurst":         fmt.Sprint(burst),
	}
	if c.Versioning != "" {
		parameters["FilesVersioning"] = c.Versioning
	}
	return parameters
}

// run starts a service, has storm send requests, repeats what got no certain
// answer, and compares storage with what clients were answered.
func run(ctx context.Context, c Config, parameters map[string]string, storm func(*fixture, *Result) error) (result Result, err error) {
	s, err := service.Start(ctx, service.Config{Root: c.Root, State: c.State, Parameters: parameters})
	if err != nil {
		return result, err
	}
	err = audited(ctx, s, c, storm, &result)
	if closing := s.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return result, err
	}
	leaks, err := testkit.Leaks(c.State)
	result.Broken = append(result.Broken, leaks...)
	return result, err
}

func audited(ctx context.Context, s *service.Service, c Config, storm func(*fixture, *Result) error, result *Result) error {
	f, err := newFixture(ctx, s, c)
	if err != nil {
		return err
	}
	if err := storm(f, result); err != nil {
		return err
	}
	// What is on disk counts, not what some process remembers.
	if err := s.Restart(ctx); err != nil {
		return err
	}
	result.Editions++
	if err := f.finish(ctx); err != nil {
		return err
	}
	result.Requests, result.Throttled = int(f.requests.Load()), int(f.throttled.Load())
	result.Report, err = f.ledger.Audit(ctx, s.Stack())
	return err
}

// start has so many clients send requests until the context is done.
func (f *fixture) start(ctx context.Context, all *sync.WaitGroup, count int) {
	for i := range count {
		all.Go(func() {
			c := client{fixture: f, random: source(f.seed, i), apiKey: f.keys[i%clients].Token, number: int(f.started.Add(1))}
			c.run(ctx)
		})
	}
}

// source is the random source of one client, the same for the same seed.
func source(seed uint64, number int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(number))) //nolint:gosec // repeatable, on purpose
}
