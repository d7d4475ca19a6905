package routing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// Ten thousand requests come in one second, while the value changes all the time.
// Each gets a value no older than itself, from at most 300 reads.
func TestSharedReadsBeginAfterTheirRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests = 10_000
		var version, begun atomic.Int64
		shared := newPaced(make(slots, mostReads), func(context.Context, string) (int64, error) {
			n := begun.Add(1)
			time.Sleep(time.Duration(n*7%10) * time.Millisecond)
			seen := version.Load()
			time.Sleep(time.Duration(n*3%10) * time.Millisecond)
			return seen, nil
		})
		var group sync.WaitGroup
		for range requests {
			time.Sleep(time.Second / requests)
			version.Add(1)
			group.Go(func() {
				arrived := version.Load()
				if got, err := shared.get(t.Context(), "k"); err != nil || got < arrived {
					t.Errorf("arrived at %d, got %d, %v", arrived, got, err)
				}
			})
		}
		group.Wait()
		if n := begun.Load(); n > 300 {
			t.Errorf("%d reads", n)
		}
		time.Sleep(interval)
		synctest.Wait()
		if len(shared.all) != 0 {
			t.Errorf("%d are left", len(shared.all))
		}
	})
}

// After a read for several requests, the next one begins 4 ms after that one began. So it
// does after a read that hangs.
func TestReadsForManyArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var begun []time.Duration
		start := time.Now()
		shared := newPaced(make(slots, mostReads), func(context.Context, string) (string, error) {
			mu.Lock()
			begun = append(begun, time.Since(start))
			hangs := len(begun) == 3
			mu.Unlock()
			if time.Sleep(time.Millisecond); hangs {
				time.Sleep(700 * time.Millisecond)
			}
			return "", nil
		})
		var group sync.WaitGroup
		for _, at := range []time.Duration{0, 0, 0, 1500, 6000} { // µs
			time.Sleep(at*time.Microsecond - time.Since(start))
			group.Go(func() {
				if _, err := shared.get(t.Context(), "k"); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		group.Wait()
		if want := []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 9 * time.Millisecond}; !slices.Equal(begun, want) {
			t.Errorf("the reads began at %v, want %v", begun, want)
		}
	})
}

// After its burst an account consumes 1,000 read units a second, however many requests and
// workspaces it has. A serial caller, of another account, waits for nobody.
func TestAnAccountHasABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cost, seconds = 245, 10
		used := map[ids.Account]int{}
		var mu sync.Mutex
		shared := newPaidPaced(make(slots, mostReads), paidFrom(newBudget(), func(_ context.Context, w ownedWorkspace, paid charge) (string, error) {
			time.Sleep(time.Millisecond)
			units := 1
			if w.account == "large" {
				units = cost
			}
			mu.Lock()
			used[w.account] += units
			mu.Unlock()
			paid.correct(float64(units))
			return "", nil
		}))
		var group sync.WaitGroup
		end := time.Now().Add(seconds * time.Second)
		for caller := range 64 {
			of := ownedWorkspace{"large", ids.Workspace(rune('a' + caller%2))}
			if caller == 0 {
				of.account = "small"
			}
			group.Go(func() {
				for time.Now().Before(end) {
					began := time.Now()
					_, err := shared.get(t.Context(), of)
					if of.account == "large" && errors.Is(err, errBusy) {
						continue // its other workspace had the budget for two seconds
					}
					if err != nil || of.account == "small" && time.Since(began) > time.Millisecond {
						t.Errorf("%s: %v after %v", of.account, err, time.Since(began))
					}
				}
			})
		}
		group.Wait()
		// Before the first answers the cost of the workspaces is unknown: three reads each.
		if n := used["large"]; n < seconds*1000 || n > (seconds+1)*1000+6*cost {
			t.Errorf("%d read units in %d seconds", n, seconds)
		}
		if n := used["small"]; n < 1000*seconds {
			t.Errorf("the other account made %d reads", n)
		}
	})
}

// A map that is full loses one entry for a new one, and none for a change.
func TestAFullMapLosesOneEntry(t *testing.T) {
	b := newBudget()
	for n := range mostEntries + 100 {
		paid, wait := b.pay(ownedWorkspace{account: ids.Account(strconv.Itoa(n))})
		if wait != 0 {
			t.Fatalf("a new account waits %v", wait)
		}
		paid.correct(10_000) // changes the new entry
	}
	if len(b.spent) != mostEntries || len(b.costs) != mostEntries {
		t.Errorf("%d budgets, %d costs", len(b.spent), len(b.costs))
	}
}

// If a request gives up, the read goes on for the others. If a read hangs or panics,
// all waiting requests get an error, and later requests do not.
func TestSharedReadsFail(t *testing.T) {
	for name, fail := range map[string]func(context.Context) error{
		"hangs":  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"panics": func(context.Context) error { time.Sleep(byok.ReadTime); panic("a panic") },
	} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			shared := newPaced(make(slots, mostReads), func(ctx context.Context, _ string) (string, error) {
				if calls.Add(1) > 1 {
					return "fine", nil
				}
				return "", fail(ctx)
			})
			impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if _, err := shared.get(impatient, "k"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: impatient: %v", name, err)
			}
			if got, err := shared.get(t.Context(), "k"); got != "fine" || err != nil { // the next read
				t.Errorf("%s: next: %q, %v", name, got, err)
			}
			calls.Store(0)
			time.Sleep(byok.ReadTime)
			began := time.Now()
			if got, err := shared.get(t.Context(), "k"); err == nil || got != "" || time.Since(began) != byok.ReadTime {
				t.Errorf("%s: %q, %v after %v", name, got, err, time.Since(began))
			}
		})
	}
}

// Two reads are under way at once. The others wait in turn, one of each key, for two seconds at
// most, and nobody reads for a request that has left.
func TestReadsWaitForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var read []string
		shared := newPaced(make(slots, 2), func(_ context.Context, key string) (string, error) {
			mu.Lock()
			read = append(read, key)
			mu.Unlock()
			time.Sleep(1500 * time.Millisecond)
			return key, nil
		})
		var group sync.WaitGroup
		for i, key := range []string{"busy", "busy", "busy", "a", "b", "c"} {
			time.Sleep(interval)
			group.Go(func() {
				got, err := shared.get(t.Context(), key)
				if isBusy := i >= 4; isBusy != errors.Is(err, errBusy) || !isBusy && got != key {
					t.Errorf("%s: %q, %v", key, got, err)
				}
			})
			synctest.Wait()
		}
		group.Wait()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if want := []string{"busy", "busy", "busy", "a"}; !slices.Equal(read, want) || len(shared.all) != 0 {
			t.Errorf("read %v, want %v; %d are left", read, want, len(shared.all))
		}
	})
}

// A call whose connection hangs is made again after 0.8 s. A late answer counts, and is not cut.
// If there is none, the error is the call's own, which names its service and host.
func TestALateCall(t *testing.T) {
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		first, second time.Duration // until the answer; less than 0: an error after that time
		seconds       int
		want, calls   time.Duration // until the result; number
		err           error
	}{
		"in time":               {700, 0, 1, 700, 1, nil},
		"the first one hangs":   {9000, 10, 1, 810, 2, nil},
		"the service is slow":   {1200, 1200, 1, 1200, 2, nil},
		"too many second calls": {1200, 1, 0, 1200, 1, nil},
		"an error in time":      {-100, 0, 1, 100, 1, failed},
		"the first one fails":   {-900, 300, 1, 1100, 2, nil},
		"the second one fails":  {1500, -10, 1, 1500, 2, nil},
		"both hang":             {9000, 9000, 1, 2000, 2, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), byok.ReadTime)
			defer cancel()
			var calls, cut atomic.Int64
			began := time.Now()
			_, err := firstOf(ctx, late{make(slots, c.seconds), make(chan func())}, func(ctx context.Context) (string, error) {
				answer := []time.Duration{c.first, c.second}[calls.Add(1)-1] * time.Millisecond
				select {
				case <-time.After(max(answer, -answer)):
				case <-ctx.Done():
					cut.Add(1)
					return "", fmt.Errorf("of the call: %w", ctx.Err())
				}
				if answer < 0 {
					return "", failed
				}
				return "", nil
			})
			isCalls := c.err == nil || errors.Is(err, failed) || strings.HasPrefix(err.Error(), "of the call")
			if took := time.Since(began); !errors.Is(err, c.err) || !isCalls || took != c.want*time.Millisecond || calls.Load() != int64(c.calls) {
				t.Errorf("%s: %v after %v, %d calls", name, err, took, calls.Load())
			}
			cancel()
			time.Sleep(10 * time.Second)
			if most := map[bool]int64{true: 2}[errors.Is(c.err, context.DeadlineExceeded)]; c.first < 9000 && cut.Load() > most {
				t.Errorf("%s: %d calls are cut", name, cut.Load())
			}
		})
	}
}
