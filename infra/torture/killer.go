package torture

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"signalbox.dev/infra/local/child/childtest"
)

// The shortest and the longest time between two kills.
const (
	shortest = 10 * time.Millisecond
	longest  = 200 * time.Millisecond
)

// Kills counts the processes that were killed.
type Kills struct{ Functions, Engines, Editions int }

// Killer kills instances of functions, engines, and sometimes the whole edition.
type Killer struct {
	testing.TB

	Service *Service
	Random  *rand.Rand
	Kills
}

// KilledAll reports whether something of each kind was killed.
func (k *Killer) KilledAll() bool { return k.Functions > 0 && k.Engines > 0 && k.Editions > 0 }

// Run kills until the context is done. It returns the error of a failed restart.
func (k *Killer) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(shortest + time.Duration(k.Random.Int64N(int64(longest-shortest)))):
		}
		switch n := k.Random.IntN(10); {
		case n == 0, k.Functions > 0 && k.Engines > 0 && k.Editions == 0:
			if err := k.Service.Restart(context.WithoutCancel(ctx)); err != nil {
				return err
			}
			k.Editions++
		case n < 4:
			k.Engines += k.killOne(false)
		default:
			k.Functions += k.killOne(true)
		}
	}
}

// killOne kills a function or an engine and returns 1, or 0 if none runs.
func (k *Killer) killOne(function bool) int {
	edition := k.Service.running.cmd.Process.Pid // only Run restarts it
	var some []int
	for _, child := range childtest.Of(k.TB, edition) {
		program := childtest.Program(child)
		// Between fork and exec a child is still the edition's program.
		if program != "" && program != childtest.Program(edition) && (filepath.Base(program) == "bootstrap") == function {
			some = append(some, child)
		}
	}
	if len(some) > 0 && syscall.Kill(some[k.Random.IntN(len(some))], syscall.SIGKILL) == nil {
		return 1
	}
	return 0
}
