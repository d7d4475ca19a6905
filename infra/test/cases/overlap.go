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

// Overlap is a situation in which acts run side by side. It is played on the model, once for
// each seed: each call is delayed, before it is applied and before its answer, by a hash of the
// seed, the act, the call and its number. So a seed has the same trace in every process.
type Overlap struct {
	Name       string
	Versioning string
	// Set stores the rows and files, and returns the acts and the judge of their results.
	Set func(*World) ([]Act, func([]Done))
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
		problems := play(t, false, setup, func(w *World) { o.overlap(w, seed, reached) })
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

func (o Overlap) overlap(w *World, seed int, reached map[string]bool) {
	acts, judge := o.Set(w)
	var (
		mu    sync.Mutex
		done  []Done
		group sync.WaitGroup
	)
	for _, a := range acts {
		group.Go(func() {
			r, _ := w.run(&a, nil, disturbance{delay: func(c Call, answer bool) time.Duration {
				return delay(seed, a.Name, c, answer)
			}})
			mu.Lock()
			defer mu.Unlock()
			done = append(done, Done{Act: a.Name, Result: r})
			reached[a.Name+": "+r.Text] = true
		})
	}
	group.Wait()
	judge(done)
}

// delay is at most 32 ms, in steps of a nanosecond: no two calls are answered at once.
func delay(seed int, act string, c Call, answer bool) time.Duration {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, seed, act, c, answer) // never fails
	return time.Duration(hash.Sum64() % uint64(32*time.Millisecond))
}

// Count counts the acts that ended in the result, without the repeated ones.
func Count(done []Done, result string) int {
	return len(slices.DeleteFunc(slices.Clone(done), func(d Done) bool { return d.Again || d.Result.Text != result }))
}
