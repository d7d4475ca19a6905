package routing

import (
	"context"
	"fmt"
	"sync"
	"time"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
)

// between is the time between the beginnings of two reads of the same key, if the first
// serves several requests or is still under way. It bounds the load that one tenant's
// requests put on DynamoDB, and what a read that hangs costs the requests after it.
const between = 4 * time.Millisecond

// reads shares reads between requests that wait at the same time. Each request gets the
// result of a read that began after the request arrived. It never shares a read under
// way, because that read may miss a revocation that committed before the request. All
// waiting requests share the result, so nobody may change it.
type reads[K comparable, V any] struct {
	read func(context.Context, K, settle) (V, error)
	// charge pays for the next read of the key, or returns how long it must wait. Without
	// it no read waits.
	charge func(K) (settle, time.Duration)

	mu    sync.Mutex
	paces map[K]*pace[V]
}

// settle reports what a read that was charged has cost.
type settle func(units float64)

// pace is the last read of a key and the next one. It exists for the time between from the
// beginning of the last one, and for as long as requests wait.
type pace[V any] struct {
	last, next *flight[V] // next is nil if no request waits
	mayBegin   bool       // between has passed since the last one began
	delayed    bool       // the next one waits for charge
}

// flight is one read. Its result is set once done is closed.
type flight[V any] struct {
	requests int // that share it
	ended    bool
	done     chan struct{}
	value    V
	err      error
}

func newReads[K comparable, V any](read func(context.Context, K, settle) (V, error)) *reads[K, V] {
	return &reads[K, V]{read: read, paces: make(map[K]*pace[V])}
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
	p := r.paces[key]
	if p == nil {
		p = &pace[V]{mayBegin: true}
		r.paces[key] = p
	}
	if p.next == nil {
		p.next = &flight[V]{done: make(chan struct{})}
	}
	f := p.next
	f.requests++
	r.proceed(key, p)
	return f
}

// proceed begins the next read if it need not wait. It is called with the lock held,
// whenever a reason to wait has ended.
func (r *reads[K, V]) proceed(key K, p *pace[V]) {
	isAlone := p.last != nil && p.last.ended && p.last.requests == 1
	switch {
	case p.next == nil && p.mayBegin:
		if r.paces[key] == p { // else it was deleted before
			delete(r.paces, key)
		}
		return
	case p.next == nil, p.delayed, !p.mayBegin && !isAlone:
		return
	}
	settle, wait := settle(func(float64) {}), time.Duration(0)
	if r.charge != nil {
		settle, wait = r.charge(key)
	}
	if wait > 0 {
		p.delayed = true
		time.AfterFunc(wait, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			p.delayed = false
			r.proceed(key, p)
		})
		return
	}
	r.begin(key, p, settle)
}

// begin is called with the lock held.
func (r *reads[K, V]) begin(key K, p *pace[V], settle settle) {
	f := p.next
	p.last, p.next, p.mayBegin = f, nil, false
	time.AfterFunc(between, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if p.last == f {
			p.mayBegin = true
			r.proceed(key, p)
		}
	})
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), byok.ReadTime)
		defer cancel()
		defer func() {
			if v := recover(); v != nil { // it would end the router
				f.err = fmt.Errorf("%w: %w", ErrUnavailable, calls.Recovered(v))
			}
			close(f.done)
			r.mu.Lock()
			defer r.mu.Unlock()
			f.ended = true
			if p.last == f {
				r.proceed(key, p)
			}
		}()
		f.value, f.err = r.read(ctx, key, settle)
	}()
}
