package crash

import (
	"context"
	"math/rand/v2"
	"time"

	"signalbox.dev/infra/torture/service"
)

const (
	// shortest and longest are the times between two kills.
	shortest = 10 * time.Millisecond
	longest  = 200 * time.Millisecond
)

// killer kills processes as kill -9 does.
type killer struct {
	service *service.Service
	random  *rand.Rand
	result  *Result
}

// run kills until the context is done. Its error is that of a service that does
// not come back.
func (k *killer) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(shortest + time.Duration(k.random.Int64N(int64(longest-shortest)))):
		}
		whole := context.WithoutCancel(ctx)
		switch n := k.random.IntN(10); {
		case n < 6:
			k.result.Functions += k.one(whole, func(p service.Process) bool { return p.Function })
		case n < 9:
			k.result.Engines += k.one(whole, service.Process.Engine)
		default:
			if err := k.service.Restart(whole); err != nil {
				return err
			}
			k.result.Editions++
		}
	}
}

// one kills one of the processes, if there is one, and counts it.
func (k *killer) one(ctx context.Context, wanted func(service.Process) bool) int {
	var some []service.Process
	for _, p := range k.service.Processes(ctx) {
		if wanted(p) {
			some = append(some, p)
		}
	}
	if len(some) > 0 && some[k.random.IntN(len(some))].Kill(ctx) {
		return 1
	}
	return 0
}
