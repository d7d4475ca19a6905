package service

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// shortest and longest are the times between two kills.
	shortest = 10 * time.Millisecond
	longest  = 200 * time.Millisecond
)

// Kills counts what was killed.
type Kills struct{ Functions, Engines, Editions int }

// Killer kills instances of functions, engines, and now and then the edition with
// everything in it.
type Killer struct {
	Service *Service
	Random  *rand.Rand
	// Spare keeps the edition itself alive.
	Spare bool

	kills Kills
}

// Run kills until the context is done, and counts. Its error is that of a service
// that does not come back.
func (k *Killer) Run(ctx context.Context) (Kills, error) {
	for {
		select {
		case <-ctx.Done():
			return k.kills, nil
		case <-time.After(shortest + time.Duration(k.Random.Int64N(int64(longest-shortest)))):
		}
		whole := context.WithoutCancel(ctx)
		switch n := k.Random.IntN(10); {
		case n < 6:
			k.kills.Functions += k.one(whole, func(p Process) bool { return p.Function })
		case n < 9:
			k.kills.Engines += k.one(whole, Process.Engine)
		case !k.Spare:
			if err := k.Service.Restart(whole); err != nil {
				return k.kills, err
			}
			k.kills.Editions++
		}
	}
}

// one kills one of the processes, if there is one, and counts it.
func (k *Killer) one(ctx context.Context, wanted func(Process) bool) int {
	var some []Process
	for _, p := range k.Service.Processes(ctx) {
		if wanted(p) {
			some = append(some, p)
		}
	}
	if len(some) > 0 && some[k.Random.IntN(len(some))].Kill(ctx) {
		return 1
	}
	return 0
}
