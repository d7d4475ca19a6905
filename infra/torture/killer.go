package torture

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/shirou/gopsutil/v4/process"
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
	Service *Service
	Random  *rand.Rand
	Kills
}

// KilledAll reports whether something of each kind was killed.
func (k *Killer) KilledAll() bool { return k.Functions > 0 && k.Engines > 0 && k.Editions > 0 }

// Run kills until the context is done. Its error is that of a restart.
func (k *Killer) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(shortest + time.Duration(k.Random.Int64N(int64(longest-shortest)))):
		}
		whole := context.WithoutCancel(ctx)
		switch n := k.Random.IntN(10); {
		case n == 0, k.Functions > 0 && k.Engines > 0 && k.Editions == 0:
			if err := k.Service.Restart(whole); err != nil {
				return err
			}
			k.Editions++
		case n < 4:
			k.Engines += k.killOne(whole, false)
		default:
			k.Functions += k.killOne(whole, true)
		}
	}
}

// killOne kills a function or an engine and returns 1, or 0 if none runs.
func (k *Killer) killOne(ctx context.Context, function bool) int {
	pid := k.Service.running.cmd.Process.Pid                       // only Run restarts it
	edition, err := process.NewProcessWithContext(ctx, int32(pid)) //nolint:gosec // a process id fits
	if err != nil {
		return 0
	}
	own, err := edition.ExeWithContext(ctx)
	if err != nil {
		return 0
	}
	children, err := edition.ChildrenWithContext(ctx)
	if err != nil {
		return 0
	}
	var some []*process.Process
	for _, child := range children {
		program, err := child.ExeWithContext(ctx)
		// Between fork and exec a child is still the edition's program.
		if err == nil && program != own && (filepath.Base(program) == "bootstrap") == function {
			some = append(some, child)
		}
	}
	if len(some) > 0 && some[k.Random.IntN(len(some))].KillWithContext(ctx) == nil {
		return 1
	}
	return 0
}
