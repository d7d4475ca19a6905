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
// has ended and served one request. Else it begins 4 ms after the last one began, also if that
// one hangs. So a serial caller waits for nobody, and many callers cost 250 reads a second:
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
	read func(context.Context, K, charge) (V, error) // a free read ignores the charge, see budget.go
	// pay pays for a read, or returns how long the read must wait.
	pay func(K) (charge, time.Duration)

	mu  sync.Mutex
	all map[K]*series[V]
}

// series is the last read of a K and the next one. It exists as long as the next read would
// have to wait, or requests wait for it.
type series[V any] struct {
	last         *flight[V] // the zero flight before the first read
	next         *flight[V] // nil if no request waits
	delayedUntil time.Time  // the next read cannot be paid before
}

// flight is one read. Its result is set once done is closed.
type flight[V any] struct {
	requests int // that share it
	begun    time.Time
	ended    bool
	done     chan struct{}
	value    V
	err      error
}

// newPaced paces reads that are free.
func newPaced[K comparable, V any](read func(context.Context, K) (V, error)) *paced[K, V] {
	return newPaidPaced(
		func(ctx context.Context, k K, _ charge) (V, error) { return read(ctx, k) },
		func(K) (charge, time.Duration) { return charge{}, 0 })
}

// newPaidPaced paces reads that must be paid for.
func newPaidPaced[K comparable, V any](read func(context.Context, K, charge) (V, error), pay func(K) (charge, time.Duration)) *paced[K, V] {
	return &paced[K, V]{read: read, pay: pay, all: make(map[K]*series[V])}
}

// get waits for the next read. The context ends the wait, not the read: others may be
// waiting for it.
func (p *paced[K, V]) get(ctx context.Context, k K) (value V, err error) {
	f := p.join(k)
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// join returns the next read, and begins it if it need not wait.
func (p *paced[K, V]) join(k K) *flight[V] {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.all[k]
	if s == nil {
		s = &series[V]{last: new(flight[V])}
		p.all[k] = s
	}
	if s.next == nil {
		s.next = &flight[V]{done: make(chan struct{})}
	}
	f := s.next
	f.requests++
	p.proceed(k, s)
	return f
}

// proceed begins the next read if it need not wait. It is called with the lock held,
// whenever a reason to wait may have ended.
func (p *paced[K, V]) proceed(k K, s *series[V]) {
	if s.mustWait() {
		return
	}
	if s.next == nil {
		if p.all[k] == s { // a timer may come after the series was deleted
			delete(p.all, k)
		}
		return
	}
	paid, wait := p.pay(k)
	if wait > 0 {
		s.delayedUntil = time.Now().Add(wait)
		time.AfterFunc(wait, func() { p.resume(k, s) })
		return
	}
	f := s.next
	f.begun = time.Now()
	s.last, s.next = f, nil
	time.AfterFunc(interval, func() { p.resume(k, s) })
	go p.run(k, s, f, paid)
}

// mustWait reports whether the next read may not begin yet.
func (s *series[V]) mustWait() bool {
	if time.Now().Before(s.delayedUntil) {
		return true
	}
	endedForOne := s.last.ended && s.last.requests == 1
	return !endedForOne && time.Since(s.last.begun) < interval
}

func (p *paced[K, V]) resume(k K, s *series[V]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proceed(k, s)
}

func (p *paced[K, V]) run(k K, s *series[V], f *flight[V], paid charge) {
	ctx, cancel := context.WithTimeout(context.Background(), byok.ReadTime)
	defer cancel()
	f.value, f.err = safely(ctx, func(ctx context.Context) (V, error) { return p.read(ctx, k, paid) })
	close(f.done)
	p.mu.Lock()
	defer p.mu.Unlock()
	f.ended = true
	p.proceed(k, s)
}

// safely returns a panic as an error. On a goroutine that serves several requests, a panic
// would end the router.
func safely[V any](ctx context.Context, read func(context.Context) (V, error)) (value V, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %w", ErrUnavailable, calls.Recovered(v))
		}
	}()
	return read(ctx)
}
