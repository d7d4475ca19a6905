package routing

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

// opener opens a new buffer each time.
type opener struct{ buffers [][]byte }

func (o *opener) open(context.Context) (secret.Bytes, error) {
	o.buffers = append(o.buffers, []byte("sk-secret"))
	return secret.New(o.buffers[len(o.buffers)-1]), nil
}

func mustGet(t *testing.T, c *cache, key cacheKey, open readFunc[secret.Bytes]) {
	t.Helper()
	got, err := c.get(t.Context(), key, open)
	if err != nil || string(got.Reveal()) != "sk-secret" {
		t.Fatalf("got %q, %v", got.Reveal(), err)
	}
	got.Wipe() // wipes the caller's copy, not the kept key
}

// Age makes the rows of the reading older.
func (r *Reading) Age(by time.Duration) { r.begun = r.begun.Add(-by) }

// An opened key is not used for a seal or place that differs in any part.
func TestAKeyIsKeptForOneSealInOnePlace(t *testing.T) {
	stored := func() byok.Stored {
		return byok.Stored{
			Credential: byok.Credential{Account: "a", Workspace: "w", ID: "c", Settings: byok.Settings{Provider: "p"}},
			Sealed:     seal.Sealed{Format: 1, KeyARN: "arn", WrappedKey: []byte("k"), Nonce: []byte("n"), Ciphertext: []byte("x")},
		}
	}
	first := keyOf(stored())
	for name, change := range map[string]func(*byok.Stored){
		"account":     func(s *byok.Stored) { s.Account = "b" },
		"workspace":   func(s *byok.Stored) { s.Workspace = "b" },
		"credential":  func(s *byok.Stored) { s.ID = "b" },
		"provider":    func(s *byok.Stored) { s.Provider = "b" },
		"format":      func(s *byok.Stored) { s.Sealed.Format = 2 },
		"KMS key":     func(s *byok.Stored) { s.Sealed.KeyARN = "b" },
		"wrapped key": func(s *byok.Stored) { s.Sealed.WrappedKey = []byte("b") },
		"nonce":       func(s *byok.Stored) { s.Sealed.Nonce = []byte("b") },
		"ciphertext":  func(s *byok.Stored) { s.Sealed.Ciphertext = []byte("b") },
	} {
		changed := stored()
		change(&changed)
		if keyOf(changed) == first {
			t.Errorf("with another %s the kept key is the same", name)
		}
	}
}

func TestKeysAreKeptForAMinuteAndWiped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(10)
		var o opener
		mustGet(t, c, cacheKey{1}, o.open)
		time.Sleep(time.Minute - time.Nanosecond)
		mustGet(t, c, cacheKey{1}, o.open)
		if n := len(o.buffers); n != 1 {
			t.Errorf("opened %d times within a minute", n)
		}
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		if kept := o.buffers[0]; string(kept) != string(make([]byte, len(kept))) {
			t.Error("a key is still there after its minute")
		}
		if len(c.entries) != 0 {
			t.Error("its entry is still there")
		}
	})
}

// With one key more than fits, asked for in turn, most are still there. Their number and
// their bytes are bounded.
func TestARandomKeyLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(100)
		var o opener
		for n := range byte(200) {
			mustGet(t, c, cacheKey{n % 101}, o.open)
		}
		if n := len(o.buffers); n < 101 || n > 170 || len(c.entries) != 100 || c.bytes != 100*len("sk-secret") {
			t.Errorf("opened %d times, %d keys and %d bytes are kept", n, len(c.entries), c.bytes)
		}
		large := func(context.Context) (secret.Bytes, error) { return secret.New(make([]byte, mostBytes/4)), nil }
		for n := range byte(10) {
			if _, err := c.get(t.Context(), cacheKey{n, 1}, large); err != nil || c.bytes > mostBytes {
				t.Errorf("%d bytes are kept, %v", c.bytes, err)
			}
		}
		c.clear()
		for _, plain := range o.buffers {
			if plain[0] != 0 {
				t.Error("a key that left is not wiped")
			}
		}
		if c.bytes != 0 || len(c.opened) != 0 {
			t.Errorf("%d bytes of %d keys after clear", c.bytes, len(c.opened))
		}
	})
}

func TestConcurrentOpeningsShareOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(10)
		var opened atomic.Int64
		open := func(ctx context.Context) (secret.Bytes, error) {
			opened.Add(1)
			time.Sleep(time.Second)
			return secret.New([]byte("sk-secret")), ctx.Err()
		}
		// The first one gives up; the others still get the key.
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := c.get(impatient, cacheKey{1}, open); !errors.Is(err, ErrUnavailable) {
				t.Errorf("without time left: %v", err)
			}
		})
		synctest.Wait()
		for range 20 {
			group.Go(func() { mustGet(t, c, cacheKey{1}, open) })
		}
		group.Wait()
		if opened.Load() != 1 {
			t.Errorf("opened %d times", opened.Load())
		}
		c.clear()
	})
}

// The key is wiped, with or without a request that waits for it.
func TestClearingWhileAKeyIsBeingOpened(t *testing.T) {
	for _, patience := range []time.Duration{time.Minute, time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c, plain := newCache(10), []byte("sk-secret")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			time.AfterFunc(2*time.Millisecond, c.clear)
			got, err := c.get(ctx, cacheKey{1}, func(ctx context.Context) (secret.Bytes, error) {
				time.Sleep(time.Second)
				return secret.New(plain), ctx.Err()
			})
			if patience == time.Minute && (err != nil || string(got.Reveal()) != "sk-secret") {
				t.Errorf("got %q, %v", got.Reveal(), err)
			}
			if patience == time.Millisecond && (!errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded)) {
				t.Error(err)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if plain[0] != 0 || len(c.entries) != 0 {
				t.Errorf("%q, %d entries", plain, len(c.entries))
			}
		})
	}
}

// Slow, failing and panicking openings leave exactly the open keys in the cache.
func TestOpeningsDoNotDriveOutOpenKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(2)
		var o opener
		for key := range byte(2) {
			mustGet(t, c, cacheKey{key}, o.open)
		}
		outage := errors.New("no KMS")
		var group sync.WaitGroup
		for key := range byte(5) {
			group.Go(func() {
				got, err := c.get(t.Context(), cacheKey{9, key}, func(context.Context) (secret.Bytes, error) {
					if time.Sleep(time.Duration(key) * time.Second); key == 3 {
						panic("sk-secret")
					}
					return secret.Bytes{}, outage
				})
				if !errors.Is(err, outage) && !errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "sk-") || got.Reveal() != nil {
					t.Errorf("got %q, %v", got.Reveal(), err)
				}
			})
		}
		group.Wait()
		for key := range byte(2) {
			mustGet(t, c, cacheKey{key}, o.open)
		}
		if n := len(o.buffers); n != 2 || len(c.entries) != 2 {
			t.Errorf("opened %d times, %d entries", n, len(c.entries))
		}
		c.clear()
	})
}
