// Package crash kills what serves, at random points under a stream of requests:
// instances of functions, engines, and the whole edition with everything in it.
// Afterwards nothing that was acknowledged may be lost, nothing that was refused
// may be there, and what was uncertain must be there whole or not at all.
package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"signalbox.dev/infra/torture/killer"
	"signalbox.dev/infra/torture/ledger"
	"signalbox.dev/infra/torture/service"
)

const (
	// clients send one request after the other, each on its own.
	clients = 8
	// enough requests were sent, and a function and an engine killed, before time
	// may be up.
	enough = 100
)

// Config says how long to go on, and with what.
type Config struct {
	// Root is the repository's folder, State an empty one.
	Root, State string
	// Versioning is the template's FilesVersioning.
	Versioning string
	Seed       uint64
	// Duration is how long it kills at the least: it goes on until there was enough
	// to kill.
	Duration time.Duration
}

// Result is what came of it.
type Result struct {
	killer.Kills
	Requests int
	ledger.Report
}

// Run runs a service of its own, has clients use it while it is killed, and
// holds it to what they were told.
func Run(ctx context.Context, c Config) (Result, error) {
	result, err := run(ctx, c)
	if err != nil {
		return result, err
	}
	leaks, err := ledger.Leaks(c.State)
	result.Broken = append(result.Broken, leaks...)
	return result, err
}

func run(ctx context.Context, c Config) (result Result, err error) {
	s, err := service.Start(ctx, service.Config{Root: c.Root, State: c.State, Parameters: service.Unthrottled(map[string]string{
		"FilesVersioning":     c.Versioning,
		"DeleteRatePerMinute": fmt.Sprint(ratePerMinute),
		"DeleteBurst":         fmt.Sprint(burst),
	})})
	if err != nil {
		return result, err
	}
	defer func() {
		if closing := s.Close(); err == nil {
			err = closing
		}
	}()
	w, err := furnish(ctx, s, c)
	if err != nil {
		return result, err
	}
	if err := w.storm(ctx, c, &result); err != nil {
		return result, err
	}
	// What is on disk counts, not what some process remembers.
	if err := s.Restart(ctx); err != nil {
		return result, err
	}
	result.Editions++
	if err := w.finish(ctx); err != nil {
		return result, err
	}
	result.Requests = int(w.requests.Load())
	result.Report, err = w.ledger.Audit(ctx, s.Stack())
	return result, err
}

// storm has clients send requests until time is up, and kills meanwhile.
func (w *scene) storm(ctx context.Context, c Config, result *Result) error {
	stormy, calm := context.WithCancel(ctx)
	defer calm()
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			x := client{scene: w, random: source(c.Seed, i), apiKey: w.keys[i].Token, number: i}
			x.run(stormy)
		})
	}
	all.Go(func() { w.hammer(stormy) })
	k := killer.Killer{Service: w.service, Random: source(c.Seed, clients)}
	var err error
	for again := true; again; again = err == nil && ctx.Err() == nil && (result.Functions == 0 || result.Engines == 0 || w.requests.Load() < enough) {
		spell, end := context.WithTimeout(ctx, c.Duration)
		result.Kills, err = k.Run(spell)
		end()
	}
	calm()
	all.Wait()
	return err
}

// source is the chance of one of those who take part, the same for the same seed.
func source(seed uint64, number int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(number))) //nolint:gosec // repeatable, on purpose
}
