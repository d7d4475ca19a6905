package routing

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/secret"
)

const (
	// keptFor is how long an opened key stays in memory. It starts before the call to
	// KMS.
	keptFor = time.Minute
	// openTimeout bounds one opening, which may outlive the request that began it:
	// others may be waiting for the same key.
	openTimeout = 10 * time.Second
	// mostBytes bounds the memory of all kept keys.
	mostBytes = 16 << 20
)

// cacheKey is a hash of a whole seal and its place. A replaced, moved or rewrapped
// credential has another cacheKey.
type cacheKey [sha256.Size]byte

func keyOf(s byok.Stored) cacheKey {
	hash := sha256.New()
	binding := s.Binding()
	for _, part := range [][]byte{
		[]byte(binding.Account), []byte(binding.Workspace), []byte(binding.Credential), []byte(binding.Provider),
		binary.BigEndian.AppendUint64(nil, uint64(s.Sealed.Format)), //nolint:gosec // any bits will do
		[]byte(s.Sealed.KeyARN), s.Sealed.WrappedKey, s.Sealed.Nonce, s.Sealed.Ciphertext,
	} {
		_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part)))) // a hash never fails
		_, _ = hash.Write(part)
	}
	return cacheKey(hash.Sum(nil))
}

// cache keeps opened keys, bounded in number and age, and wipes each key that it
// drops.
type cache struct {
	most int

	mu      sync.Mutex
	entries map[cacheKey]*entry
	open    map[cacheKey]*entry // those of entries that are open
	bytes   int                 // of the open ones
}

// entry is a key that is being opened, or is open. It is wiped once it has left the
// cache and no request still has to copy it.
type entry struct {
	key     cacheKey
	done    chan struct{} // closed once plain or err is set
	plain   secret.Bytes
	err     error
	timer   *time.Timer // ends its time in the cache
	kept    bool        // whether it is in the cache
	waiting int         // requests that are about to copy it
}

func newCache(most int) *cache {
	return &cache{most: most, entries: make(map[cacheKey]*entry), open: make(map[cacheKey]*entry)}
}

// get returns a copy of the key. Requests at the same time share one opening. Errors
// are not kept.
func (c *cache) get(ctx context.Context, key cacheKey, open func(context.Context) (secret.Bytes, error)) (secret.Bytes, error) {
	if c.most < 0 {
		return safely(ctx, open)
	}
	e := c.join(ctx, key, open)
	defer c.leave(e)
	select {
	case <-e.done:
	case <-ctx.Done():
		return secret.Bytes{}, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
	if e.err != nil {
		return secret.Bytes{}, e.err
	}
	return secret.New(bytes.Clone(e.plain.Reveal())), nil
}

// safely calls open and returns its panic as an error: in a goroutine of the cache a
// panic would end the router.
func safely(ctx context.Context, open func(context.Context) (secret.Bytes, error)) (plain secret.Bytes, err error) {
	defer func() {
		if v := recover(); v != nil {
			plain, err = secret.Bytes{}, fmt.Errorf("%w: %w", ErrUnavailable, calls.Recovered(v))
		}
	}()
	return open(ctx)
}

// join finds the key's entry or begins to open it.
func (c *cache) join(ctx context.Context, key cacheKey, open func(context.Context) (secret.Bytes, error)) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		e.waiting++
		return e
	}
	e := &entry{key: key, done: make(chan struct{}), kept: true, waiting: 1}
	c.entries[key] = e
	e.timer = time.AfterFunc(keptFor, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.drop(e)
	})
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
		defer cancel()
		plain, err := safely(ctx, open)
		c.mu.Lock()
		defer c.mu.Unlock()
		defer close(e.done)
		e.plain, e.err = plain, err
		switch {
		case err != nil:
			c.drop(e)
		case e.kept:
			c.keep(e)
		default:
			e.wipeIfUnused()
		}
	}()
	return e
}

func (c *cache) leave(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.waiting--
	e.wipeIfUnused()
}

// keep adds an open key. If there are too many, random ones leave: without the oldest, one
// key too many would make the cache useless. Keys that are still being opened do not count:
// slow or failing calls to KMS must not drive out open ones.
func (c *cache) keep(e *entry) {
	size := len(e.plain.Reveal())
	for _, other := range c.open { // in Go's random order
		if len(c.open) < c.most && c.bytes+size <= mostBytes {
			break
		}
		c.drop(other)
	}
	c.open[e.key] = e
	c.bytes += size
}

// drop removes an entry from the cache.
func (c *cache) drop(e *entry) {
	e.timer.Stop()
	if e.kept {
		delete(c.entries, e.key)
	}
	if c.open[e.key] == e {
		delete(c.open, e.key)
		c.bytes -= len(e.plain.Reveal())
	}
	e.kept = false
	e.wipeIfUnused()
}

func (e *entry) wipeIfUnused() {
	if !e.kept && e.waiting == 0 {
		e.plain.Wipe()
		e.plain = secret.Bytes{}
	}
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		c.drop(e)
	}
}
