package routing

import (
	"context"
	"fmt"
	"sync"
	"time"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
)

// Requests that wait at the same time share the next read of what they need. A request never
// gets the result of a read that was under way when it arrived: that read may miss a
// revocation that committed before the request. The next read begins at once if the last one
// has ended and served one request; else 4 ms after the last one began, also if that one
// hangs. So a serial caller waits for nobody, and many callers cost 250 reads a second:
//
//	milliseconds  0    1    2    3    4    5    6    7    8
//	requests      a    b c       d
//	reads         a---------b c-------          d---------
//
// b and c came while a's read was under way, so they need the next one. It serves two, so
// d's begins 4 ms after it began.

// interval is the time between the beginnings of two reads, if the next one may not begin at
// once.
const interval = 4 * time.Millisecond

// paced shares and paces the reads of each K. All requests of a read share its result, so
// nobody may change it.
type paced[K comparable, V any] struct {
	read func(context.Context, K, charge) (V, error)
	// charge pays for a read, or returns how long the read must wait. Without it no read
	// waits.
	charge func(K) (charge, time.Duration)

	mu    sync.Mutex
	paces map[K]*pace[V]
}

// pace is the last read of a K and the next one. It exists for the interval from the
// beginning of the last one, and for as long as requests wait.
type pace[V any] struct {
	last, next *flight[V] // next is nil if no request waits
	mayBegin   bool       // the interval has passed since the last one began
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

func newPaced[K comparable, V any](read func(context.Context, K, charge) (V, error)) *paced[K, V] {
	return &paced[K, V]{read: read, paces: make(map[K]*pace[V])}
}

// get waits for the next read. The context ends the wait, not the read: others may be
// waiting for it.
func (p *paced[K, V]) get(ctx context.Context, of K) (value V, err error) {
	f := p.join(of)
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// join returns the next read, and begins it if it need not wait.
func (p *paced[K, V]) join(of K) *flight[V] {
	p.mu.Lock()
	defer p.mu.Unlock()
	its := p.paces[of]
	if its == nil {
		its = &pace[V]{mayBegin: true}
		p.paces[of] = its
	}
	if its.next == nil {
		its.next = &flight[V]{done: make(chan struct{})}
	}
	f := its.next
	f.requests++
	p.proceed(of, its)
	return f
}

// proceed begins the next read if it need not wait. It is called with the lock held,
// whenever a reason to wait has ended.
func (p *paced[K, V]) proceed(of K, its *pace[V]) {
	isAlone := its.last != nil && its.last.ended && its.last.requests == 1
	switch {
	case its.next == nil && its.mayBegin:
		if p.paces[of] == its { // else it was deleted before
			delete(p.paces, of)
		}
		return
	case its.next == nil, its.delayed, !its.mayBegin && !isAlone:
		return
	}
	var paid charge
	var wait time.Duration
	if p.charge != nil {
		paid, wait = p.charge(of)
	}
	if wait == 0 {
		p.begin(of, its, paid)
		return
	}
	its.delayed = true
	time.AfterFunc(wait, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		its.delayed = false
		p.proceed(of, its)
	})
}

// begin is called with the lock held.
func (p *paced[K, V]) begin(of K, its *pace[V], paid charge) {
	f := its.next
	its.last, its.next, its.mayBegin = f, nil, false
	time.AfterFunc(interval, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if its.last == f {
			its.mayBegin = true
			p.proceed(of, its)
		}
	})
	go func() {
		p.fly(of, f, paid)
		p.mu.Lock()
		defer p.mu.Unlock()
		f.ended = true
		if its.last == f {
			p.proceed(of, its)
		}
	}()
}

// fly reads, and makes a panic the error of the requests: it would end the router.
func (p *paced[K, V]) fly(of K, f *flight[V], paid charge) {
	ctx, cancel := context.WithTimeout(context.Background(), byok.ReadTime)
	defer cancel()
	defer close(f.done)
	defer func() {
		if v := recover(); v != nil {
			f.err = fmt.Errorf("%w: %w", ErrUnavailable, calls.Recovered(v))
		}
	}()
	f.value, f.err = p.read(ctx, of, paid)
}
