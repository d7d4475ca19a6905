package routing

import (
	"context"
	"errors"
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

// A read also needs one of a few slots, because a table that is slow gets slower if more is
// asked of it. Reads that wait for a slot get it in turn, one of each K, so nobody's many
// requests keep others out.

const (
	// interval is the time between the beginnings of two reads, if the next one may not begin
	// at once.
	interval = 4 * time.Millisecond
	// queueTime is how long a request waits for its read to begin.
	queueTime = 2 * time.Second
	// mostReads is enough for 64 requests at once, each with three reads: at 10 ms a read, for
	// 6,400 requests a second.
	mostReads = 3 * 64
)

var errBusy = errors.New("too many reads are under way")

// slots has an element for each read that is under way.
type slots chan struct{}

// paced shares and paces the reads of each K. All requests of a read share its result, so
// nobody may change it.
type paced[K comparable, V any] struct {
	slots slots
	// prepare returns the read that begins now, or how long it must wait.
	prepare func(K) (readFunc[V], time.Duration)

	mu  sync.Mutex
	all map[K]*series[V]
}

type readFunc[V any] func(context.Context) (V, error)

// series is the last read of a K and the next one. It exists as long as the next read would
// have to wait, or requests wait for it.
type series[V any] struct {
	last         *flight[V] // the zero flight before the first read
	next         *flight[V] // nil if no request waits
	isQueued     bool       // next waits for a slot
	delayedUntil time.Time  // the next read must wait until then
}

// flight is one read. Its result is set once done is closed.
type flight[V any] struct {
	requests int // that share it
	begun    time.Time
	ended    bool
	started  chan struct{}
	done     chan struct{}
	calls.Result[V]
}

// newPaced paces reads that are free.
func newPaced[K comparable, V any](s slots, read func(context.Context, K) (V, error)) *paced[K, V] {
	return newPaidPaced(s, func(k K) (readFunc[V], time.Duration) {
		return func(ctx context.Context) (V, error) { return read(ctx, k) }, 0
	})
}

// newPaidPaced paces reads that may have to wait, see budget.go.
func newPaidPaced[K comparable, V any](s slots, prepare func(K) (readFunc[V], time.Duration)) *paced[K, V] {
	return &paced[K, V]{slots: s, prepare: prepare, all: make(map[K]*series[V])}
}

// get waits for the next read. The context and queueTime end the wait, not the read: others may be
// waiting for it.
func (p *paced[K, V]) get(ctx context.Context, k K) (value V, err error) {
	f := p.join(k)
	timer := time.NewTimer(queueTime)
	defer timer.Stop()
	select {
	case <-f.started:
	case <-timer.C:
		p.leave(f)
		return value, errBusy
	case <-ctx.Done():
		p.leave(f)
		return value, ctx.Err()
	}
	select {
	case <-f.done:
		return f.Value, f.Err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// leave ends a request's wait for a read that may not have begun.
func (p *paced[K, V]) leave(f *flight[V]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.begun.IsZero() {
		f.requests--
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
		s.next = &flight[V]{started: make(chan struct{}), done: make(chan struct{})}
	}
	f := s.next
	f.requests++
	p.proceed(k, s)
	return f
}

// proceed begins the next read if it need not wait. It is called with the lock held,
// whenever a reason to wait may have ended.
func (p *paced[K, V]) proceed(k K, s *series[V]) {
	if s.isQueued || s.mustWait() {
		return
	}
	if s.next == nil {
		if p.all[k] == s { // a timer may come after the series was deleted
			delete(p.all, k)
		}
		return
	}
	s.isQueued = true
	go p.run(k, s)
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

// run makes the next read once it has a slot.
func (p *paced[K, V]) run(k K, s *series[V]) {
	p.slots <- struct{}{}
	defer func() { <-p.slots }()
	f, read := p.begin(k, s)
	if f == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), byok.ReadTime)
	defer cancel()
	f.Result = calls.ResultOf(safely(ctx, read))
	close(f.done)
	p.mu.Lock()
	defer p.mu.Unlock()
	f.ended = true
	p.proceed(k, s)
}

// begin returns the read that begins now. There is none if nobody waits for it any more, or if
// it must wait.
func (p *paced[K, V]) begin(k K, s *series[V]) (*flight[V], readFunc[V]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.isQueued = false
	f := s.next
	if f.requests == 0 {
		s.next = nil
		p.proceed(k, s)
		return nil, nil
	}
	read, wait := p.prepare(k)
	if wait > 0 {
		s.delayedUntil = time.Now().Add(wait)
		time.AfterFunc(wait, func() { p.resume(k, s) })
		return nil, nil
	}
	f.begun = time.Now()
	s.last, s.next = f, nil
	close(f.started)
	time.AfterFunc(interval, func() { p.resume(k, s) })
	return f, read
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
