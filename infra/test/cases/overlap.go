package cases

import (
	"flag"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Overlap is a situation in which operations run at the same time. It is played on the model, once for
// each seed: each call is delayed, before it is applied and before its answer, by a hash of the
// seed, the operation, the call and its number. So a seed has the same trace in every process.
type Overlap struct {
	Name       string
	Versioning string
	// SetUp stores the rows and files, and returns the operations and the judge of their results.
	SetUp func(*Environment) ([]Operation, func([]Outcome))
	// Reaches are results that some seed must reach, such as "A: 201".
	Reaches []string
}

var (
	seeds = flag.Int("seeds", 100, "how many seeds each overlap is played with")
	from  = flag.Int("seed", 1, "the first of them")
	night = flag.Duration("night", 0, "play all overlaps for so long, with seeds from one that the clock chooses")
)

func (o Overlap) play(t *testing.T, atLeast time.Duration) {
	reached, failed, began, start := map[string]bool{}, 0, time.Now(), *from
	if atLeast > 0 {
		start = int(began.Unix())
	}
	seed, setup := start, &setup{versioning: o.Versioning, prepared: map[int]prepared{}}
	for ; seed < start+*seeds || time.Since(began) < atLeast; seed++ {
		problems := inEnvironment(t, false, setup, func(env *Environment) { o.overlap(env, seed, reached) })
		if len(problems) == 0 {
			continue
		}
		t.Errorf("seed %d:\n  %s", seed, strings.Join(problems, "\n  "))
		if failed++; failed == 3 {
			return
		}
	}
	for _, state := range o.Reaches {
		if !reached[state] {
			t.Errorf("no seed reached %q", state)
		}
	}
	t.Logf("%d seeds in %v", seed-start, time.Since(began).Round(time.Millisecond))
}

func (o Overlap) overlap(env *Environment, seed int, reached map[string]bool) {
	operations, judge := o.SetUp(env)
	var (
		mu       sync.Mutex
		outcomes []Outcome
		group    sync.WaitGroup
	)
	for _, op := range operations {
		group.Go(func() {
			r, _ := env.run(&op, nil, disturbance{delay: func(c Call, answer bool) time.Duration {
				return delay(seed, op.Name, c, answer)
			}})
			mu.Lock()
			defer mu.Unlock()
			outcomes = append(outcomes, Outcome{Operation: op.Name, Result: r})
			reached[op.Name+": "+r.Text] = true
		})
	}
	group.Wait()
	judge(outcomes)
}

// delay is at most 32 ms, in steps of a nanosecond: no two calls are answered at once.
func delay(seed int, operation string, c Call, answer bool) time.Duration {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, seed, operation, c, answer) // never fails
	return time.Duration(hash.Sum64() % uint64(32*time.Millisecond))
}

// Count counts the operations that ended in the result, without the repeated ones.
func Count(outcomes []Outcome, result string) int {
	return len(slices.DeleteFunc(slices.Clone(outcomes), func(o Outcome) bool { return o.Again || o.Result.Text != result }))
}
