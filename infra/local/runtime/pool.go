package runtime

import (
	"context"
	"slices"
	"sync"
)

// pool has the instances for one function and the queue of requests.
type pool struct {
	limit int
	// launch runs one more instance until it ends.
	launch func(*pool)
	// ended waits for every instance.
	ended sync.WaitGroup

	mu     sync.Mutex
	closed bool
	// running counts instances from launch to end; starting counts those that have not
	// requested work yet.
	running, starting int
	// idle instances wait for work; the last one to become idle goes first, as
	// its connections are the freshest.
	idle  []*instance
	all   map[*instance]bool
	queue []chan turn
}

// turn ends the wait of a request in the queue.
type turn struct {
	instance *instance
	err      error
}

// take returns an idle instance, at once or when the request's turn comes.
func (p *pool) take(ctx context.Context) (*instance, error) {
	p.mu.Lock()
	if last := len(p.idle) - 1; last >= 0 {
		i := p.idle[last]
		p.idle = p.idle[:last]
		p.mu.Unlock()
		return i, nil
	}
	mine := p.join()
	p.mu.Unlock()
	select {
	case t := <-mine:
		return t.instance, t.err
	case <-ctx.Done():
		return p.leave(ctx, mine)
	}
}

// join puts a request at the end of the queue.
func (p *pool) join() chan turn {
	mine := make(chan turn, 1)
	switch {
	case p.closed:
		mine <- turn{err: ErrClosed}
	case len(p.queue) >= maxQueue:
		mine <- turn{err: ErrThrottled}
	default:
		p.queue = append(p.queue, mine)
		p.grow()
	}
	return mine
}

// leave takes a request out of the queue, unless its turn has come.
func (p *pool) leave(ctx context.Context, mine chan turn) (*instance, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case t := <-mine:
		return t.instance, t.err
	default:
		p.queue = slices.DeleteFunc(p.queue, func(c chan turn) bool { return c == mine })
		return nil, context.Cause(ctx)
	}
}

// grow starts an instance for each request in the queue without one, up to the
// limit.
func (p *pool) grow() {
	for !p.closed && p.running < p.limit && p.starting < len(p.queue) {
		p.running++
		p.starting++
		p.ended.Go(func() { p.launch(p) })
	}
}

// next ends the wait of the first request in the queue.
func (p *pool) next(t turn) bool {
	if len(p.queue) == 0 {
		return false
	}
	p.queue[0] <- t
	p.queue = p.queue[1:]
	return true
}

// add registers an instance that was started. False means that the pool is closed.
func (p *pool) add(i *instance) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = make(map[*instance]bool)
	}
	p.all[i] = true
	return !p.closed
}

// offer makes an instance that requests work available.
func (p *pool) offer(i *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !i.ready {
		i.ready = true
		p.starting--
	}
	if !p.next(turn{instance: i}) {
		p.idle = append(p.idle, i)
	}
}

// remove removes an instance that ended, or could not be started. One that never
// requested work fails the request that it was started for: otherwise a function
// that cannot start would be started for ever.
func (p *pool) remove(i *instance, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, i)
	p.idle = slices.DeleteFunc(p.idle, func(other *instance) bool { return other == i })
	p.running--
	if !i.ready {
		p.starting--
		p.next(turn{err: err})
	}
	p.grow()
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for p.next(turn{err: ErrClosed}) {
	}
	for i := range p.all {
		i.kill()
	}
}
