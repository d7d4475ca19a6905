package routing

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"signalbox.dev/shared/byok"
)

// Ten thousand requests come in one second, while the value changes all the time.
// Each gets a value no older than itself, from at most 300 reads.
func TestSharedReadsBeginAfterTheirRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests = 10_000
		var version, begun atomic.Int64
		shared := newReads(func(context.Context, string) (int64, error) {
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
		time.Sleep(between)
		synctest.Wait()
		if len(shared.next) != 0 {
			t.Errorf("%d keys are left", len(shared.next))
		}
	})
}

// A lone request waits for nobody, and other keys do not wait for it.
func TestALoneReadBeginsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newReads(func(_ context.Context, key string) (string, error) { return key, nil })
		began := time.Now()
		for _, key := range []string{"a", "b"} {
			if got, err := shared.get(t.Context(), key); got != key || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("it took %v", d)
		}
		if _, err := shared.get(t.Context(), "a"); err != nil || time.Since(began) != between {
			t.Errorf("the next one took %v, %v", time.Since(began), err)
		}
	})
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
			shared := newReads(func(ctx context.Context, _ string) (string, error) {
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
