// Package history records what many clients do at once to the same few things,
// and how they are answered, and has a checker (porcupine) say whether the contract
// allows it: creates with and without idempotency keys, deletions of files,
// revocations of keys, deletions of workspaces, uploads, steps of jobs, and reads.
package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"signalbox.dev/infra/torture/service"
)

// Clients act at once.
const Clients = 8

const (
	// actions of each client make a round.
	actions = 15
	// patience bounds the search for an order of one round's operations.
	patience = time.Minute
)

// Config says how long to go on, and with what.
type Config struct {
	// Root is the repository's folder, State an empty one.
	Root, State string
	Seed        uint64
	// Another round begins until there are so many and time is up.
	Rounds   int
	Duration time.Duration
	// Via gives the base URL of something between the clients and the service that
	// they use. Nil means that there is nothing.
	Via func(base string) string
}

// Result is what came of it.
type Result struct {
	// Rounds are histories that were checked; of these Stormy had processes killed
	// meanwhile.
	Rounds, Stormy int
	service.Kills
	// Operations are requests, administration and reads; Observations what they
	// showed of the Objects.
	Operations, Observations, Objects int
	// Uncertain operations got no answer, or a 500.
	Uncertain int
	// Unexpected counts those in rounds in which nothing was killed.
	Unexpected int
	// Broken are histories that the contract does not allow.
	Broken []string
}

// Run has rounds of clients use a service of its own, every second one while
// functions and engines are killed, until time is up.
func Run(ctx context.Context, c Config) (result Result, err error) {
	s, err := service.Start(ctx, service.Config{Root: c.Root, State: c.State, Parameters: service.Throttled(service.Unthrottled, map[string]string{
		"DeleteRatePerMinute": "60000", "DeleteBurst": "10000",
	})})
	if err != nil {
		return result, err
	}
	defer func() {
		if closing := s.Close(); err == nil {
			err = closing
		}
	}()
	end := time.Now().Add(c.Duration)
	for round := uint64(0); result.Rounds < max(c.Rounds, 1) || time.Now().Before(end); round++ {
		r := newRound(s, c, round)
		if err := r.run(ctx, &result); err != nil {
			return result, fmt.Errorf("round %d: %w", round, err)
		}
		if err := r.judge(c.State, &result); err != nil {
			return result, err
		}
	}
	return result, nil
}

// round is one history.
type round struct {
	service *service.Service
	base    string
	seed    uint64
	number  uint64
	// stormy says that functions and engines are killed meanwhile. An answer of
	// theirs may then be lost on the way to the SDK, which asks again.
	stormy bool
	recorder
	*fixture
}

func newRound(s *service.Service, c Config, number uint64) *round {
	base := s.BaseURL()
	if c.Via != nil {
		base = c.Via(base)
	}
	return &round{
		service: s, base: base, seed: c.Seed, number: number, stormy: number%2 == 1,
		recorder: recorder{began: time.Now()},
	}
}

// source is the chance of one of those who take part, the same for the same seed.
func (r *round) source(number int) *rand.Rand {
	return rand.New(rand.NewPCG(r.seed, r.number*(Clients+1)+uint64(number))) //nolint:gosec // repeatable, on purpose
}

func (r *round) run(ctx context.Context, result *Result) error {
	var err error
	if r.fixture, err = r.newFixture(ctx); err != nil {
		return err
	}
	stormy, calm := context.WithCancel(ctx)
	defer calm()
	var storm sync.WaitGroup
	if r.stormy {
		storm.Go(func() {
			k := service.Killer{Service: r.service, Random: r.source(Clients), Spare: true}
			kills, _ := k.Run(stormy) // it spares the only one whose return may fail
			result.Functions += kills.Functions
			result.Engines += kills.Engines
		})
	}
	var all sync.WaitGroup
	for number := range Clients {
		all.Go(func() {
			x := &client{round: r, random: r.source(number), number: number}
			for range actions {
				x.act(ctx)
			}
		})
	}
	all.Wait()
	calm()
	storm.Wait()
	last := &client{round: r, number: Clients}
	for workspace := range r.account.Workspaces {
		last.list(ctx, workspace)
	}
	for _, f := range r.files {
		last.head(ctx, f)
	}
	r.recordListings(&r.recorder)
	return ctx.Err()
}

// judge checks the round, and draws a picture of one that must not be.
func (r *round) judge(dir string, result *Result) error {
	result.Rounds++
	if r.stormy {
		result.Stormy++
	} else {
		result.Unexpected += int(r.uncertain.Load())
	}
	result.Uncertain += int(r.uncertain.Load())
	result.Operations += int(r.operations.Load())
	result.Observations += len(r.all)
	result.Objects += len(byObject(r.all))
	result.Broken = append(result.Broken, r.strange...)
	verdict, info := porcupine.CheckOperationsVerbose(model(), r.all, patience)
	if verdict == porcupine.Ok {
		return nil
	}
	path := filepath.Join(dir, fmt.Sprintf("history-%d-%d.html", r.seed, r.number))
	picture, err := os.Create(path) //nolint:gosec // in the folder we were given
	if err != nil {
		return err
	}
	defer func() { _ = picture.Close() }() // what counts is the verdict
	result.Broken = append(result.Broken, fmt.Sprintf("round %d is %s: see %s", r.number, verdict, path))
	return porcupine.Visualize(model(), info, picture)
}
