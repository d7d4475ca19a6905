package routing_test

import (
	"bytes"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/routing"
)

// The key of a step is in memory while it is kept. Once it has left the cache and
// the caller has wiped its own copy, it is nowhere on the heap, garbage included.
func TestNoCopyOfAKeyIsLeft(t *testing.T) {
	if !testkit.Uninterrupted(t) {
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // what was collected might have held one
	keptOne := func(c *routing.Config) { c.Keys = 1 }
	for name, leave := range map[string]func(*fixture){
		"closed":  func(f *fixture) { f.reader.Close() },
		"evicted": func(f *fixture) { openAndWipe(t, f, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, keptOne)
			key, other := testkit.NewMasked(48), testkit.NewMasked(48)
			for _, m := range []testkit.Masked{key, other} {
				plain := m.Append(make([]byte, 0, len(m)))
				f.storeKey(t, byok.Settings{Fallback: true, Name: name}, plain)
				clear(plain)
			}
			reading := f.read(t)
			first, err := reading.Open(t.Context(), reading.Steps[1])
			testkit.Must(t, err)
			plain := key.Append(make([]byte, 0, len(key)))
			if !bytes.Equal(first.Reveal(), plain) { // both have one sort_order: their random ids decide
				key, other = other, key
			}
			clear(plain)
			first.Wipe()
			dump := testkit.Heap(t)
			if n := key.Copies(dump); n != 1 {
				t.Errorf("%d copies while the key is kept, want 1", n)
			}
			clear(dump) // it is on the heap itself
			leave(f)
			dump = testkit.Heap(t)
			ofKey, ofOther := key.Copies(dump), other.Copies(dump)
			if want := map[string]int{"evicted": 1}[name]; ofKey != 0 || ofOther != want {
				t.Errorf("%d copies of the key are left, and %d of the other one, want %d", ofKey, ofOther, want)
			}
		})
	}
}

// openAndWipe opens the n-th fallback credential.
func openAndWipe(t *testing.T, f *fixture, n int) {
	t.Helper()
	reading := f.read(t)
	key, err := reading.Open(t.Context(), reading.Steps[1+n])
	if err != nil {
		t.Error(err)
	}
	key.Wipe()
}

// While many requests open one kept key, no request that begins after a revocation
// is planned with it.
func TestRevocationUnderLoad(t *testing.T) {
	f := newFixture(t)
	c := f.store(t, byok.Settings{})
	f.mustOpen(t)
	var revoked atomic.Bool
	var served, refused atomic.Int64
	warm := make(chan struct{}, 8)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for after := 0; after < 10; {
				began := revoked.Load()
				reading, err := f.plan(t, f.bearer)
				if err != nil {
					t.Error(err)
					return
				}
				if began {
					after++
				}
				if reading.Steps[0].IsShared() {
					refused.Add(1)
					continue
				}
				if began {
					t.Error("a revoked credential is in a plan")
					return
				}
				key, err := reading.Open(t.Context(), reading.Steps[0])
				if err != nil || string(key.Reveal()) != "sk-secret" {
					t.Errorf("opened %q, %v", key.Reveal(), err)
				}
				key.Wipe()
				served.Add(1)
				select {
				case warm <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 8 {
		<-warm
	}
	testkit.Must(t, f.manager().Disable(t.Context(), f.workspace, c.ID))
	revoked.Store(true)
	group.Wait()
	if decrypts := f.calls("Decrypt"); decrypts != 1 || served.Load() < 8 || refused.Load() < 80 {
		t.Errorf("%d served, %d refused, %d decrypts", served.Load(), refused.Load(), decrypts)
	}
}
