package routing

import (
	"context"
	"errors"
	"slices"
	"strconv"
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
		shared := newPaced(func(context.Context, string) (int64, error) {
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

// A serial caller waits for nobody, and other keys do not wait for it.
func TestALoneReadBeginsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newPaced(func(_ context.Context, key string) (string, error) {
			time.Sleep(time.Millisecond)
			return key, nil
		})
		began := time.Now()
		for n, key := range []string{"a", "a", "b", "a"} {
			if got, err := shared.get(t.Context(), key); got != key || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
			if d := time.Since(began); d != time.Duration(n+1)*time.Millisecond {
				t.Errorf("after request %d: %v", n, d)
			}
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
		shared := newPaced(func(context.Context, string) (string, error) {
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
// workspaces it has. Others do not wait.
func TestAnAccountHasABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cost, seconds = 245, 10
		used := map[ids.Account]int{}
		var mu sync.Mutex
		shared := newPaidPaced(func(_ context.Context, w ownedWorkspace, paid charge) (string, error) {
			time.Sleep(10 * time.Millisecond)
			units := 1
			if w.account == "large" {
				units = cost
			}
			mu.Lock()
			used[w.account] += units
			mu.Unlock()
			paid.correct(float64(units))
			return "", nil
		}, newBudget().pay)
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
					if _, err := shared.get(t.Context(), of); err != nil || of.account == "small" && time.Since(began) > 10*time.Millisecond {
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
		if n := used["small"]; n < 100*seconds {
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
	owing := 0
	for n := range mostEntries {
		if _, wait := b.pay(ownedWorkspace{account: ids.Account(strconv.Itoa(n))}); wait > 0 {
			owing++
		}
	}
	if owing < mostEntries*9/10 {
		t.Errorf("%d accounts owe", owing)
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
			shared := newPaced(func(ctx context.Context, _ string) (string, error) {
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
