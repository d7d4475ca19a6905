package routing

import (
	"context"
	"fmt"
	"sync"
	"time"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
)

// between is the shortest time between the beginnings of two reads of the same key. It
// bounds the load that one tenant's requests put on DynamoDB.
const between = 4 * time.Millisecond

// reads shares reads between requests that wait at the same time. Each request gets the
// result of a read that began after the request arrived. It never shares a read under
// way, because that read may miss a revocation that committed before the request. All
// waiting requests share the result, so nobody may change it.
type reads[K comparable, V any] struct {
	read func(context.Context, K) (V, error)

	mu sync.Mutex
	// next holds a key from the beginning of a read until the next read may begin. The
	// value is that next read, or nil if no request waits for it.
	next map[K]*flight[V]
}

// flight is one read. Its result is set once done is closed.
type flight[V any] struct {
	done  chan struct{}
	value V
	err   error
}

func newReads[K comparable, V any](read func(context.Context, K) (V, error)) *reads[K, V] {
	return &reads[K, V]{read: read, next: make(map[K]*flight[V])}
}

// get waits for the next read of the key. The context ends the wait, not the read:
// others may be waiting for it.
func (r *reads[K, V]) get(ctx context.Context, key K) (value V, err error) {
	f := r.join(key)
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// join returns the next read of the key, and begins it if it need not wait.
func (r *reads[K, V]) join(key K) *flight[V] {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, mustWait := r.next[key]
	if f != nil {
		return f
	}
	f = &flight[V]{done: make(chan struct{})}
	if mustWait {
		r.next[key] = f
	} else {
		r.begin(key, f)
	}
	return f
}

// begin is called with the lock held.
func (r *reads[K, V]) begin(key K, f *flight[V]) {
	r.next[key] = nil
	time.AfterFunc(between, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if waiting := r.next[key]; waiting != nil {
			r.begin(key, waiting)
		} else {
			delete(r.next, key)
		}
	})
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), byok.ReadTime)
		defer cancel()
		defer close(f.done)
		defer func() {
			if v := recover(); v != nil { // it would end the router
				f.err = fmt.Errorf("%w: %w", ErrUnavailable, calls.Recovered(v))
			}
		}()
		f.value, f.err = r.read(ctx, key)
	}()
}
