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
	"signalbox.dev/shared/secret"
)

const (
	// keptFor is how long an opened key stays in memory. It starts before the call to
	// KMS.
	keptFor = time.Minute
	// openTimeout bounds one opening, which may outlive the request that began it:
	// others may be waiting for the same key.
	openTimeout = 10 * time.Second
	// mostOpened and mostBytes bound the number and the memory of all kept keys.
	mostOpened = 10_000
	mostBytes  = 16 << 20
)

// cacheKey is a hash of a seal and its binding. A replaced, moved or rewrapped credential has
// another cacheKey.
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
	opened  map[cacheKey]*entry // those of entries that are open
	bytes   int                 // of the opened ones
}

// entry is a key that is being opened, or is open. It is wiped once it has left the
// cache and no request still has to copy it.
type entry struct {
	key      cacheKey
	done     chan struct{} // closed once plain or err is set
	plain    secret.Bytes
	err      error
	timer    *time.Timer // ends its time in the cache
	isCached bool
	waiting  int // requests that are about to copy it
}

func newCache(most int) *cache {
	return &cache{most: most, entries: make(map[cacheKey]*entry), opened: make(map[cacheKey]*entry)}
}

// get returns a copy of the key. Requests at the same time share one opening. Errors
// are not kept.
func (c *cache) get(ctx context.Context, key cacheKey, open readFunc[secret.Bytes]) (secret.Bytes, error) {
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

// join finds the key's entry or begins to open it.
func (c *cache) join(ctx context.Context, key cacheKey, open readFunc[secret.Bytes]) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		e = &entry{key: key, done: make(chan struct{}), isCached: true}
		e.timer = time.AfterFunc(keptFor, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.drop(e)
		})
		c.entries[key] = e
		go c.fill(context.WithoutCancel(ctx), e, open)
	}
	e.waiting++
	return e
}

// fill opens the entry's key.
func (c *cache) fill(ctx context.Context, e *entry, open readFunc[secret.Bytes]) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	plain, err := safely(ctx, open)
	c.mu.Lock()
	defer c.mu.Unlock()
	e.plain, e.err = plain, err
	close(e.done)
	switch {
	case err != nil:
		c.drop(e)
	case e.isCached:
		c.keep(e)
	default:
		e.wipeIfUnused()
	}
}

// keep adds an open key. If there are too many, random ones leave. If the oldest left, keys that
// are used in turn would always leave before their next use. Keys that are still being opened
// do not count: slow or failing calls to KMS must not drive out open ones.
func (c *cache) keep(e *entry) {
	size := len(e.plain.Reveal())
	for _, other := range c.opened { // in Go's random order
		if len(c.opened) < c.most && c.bytes+size <= mostBytes {
			break
		}
		c.drop(other)
	}
	c.opened[e.key] = e
	c.bytes += size
}

func (c *cache) leave(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.waiting--
	e.wipeIfUnused()
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		c.drop(e)
	}
}

// drop removes an entry from the cache. It is called with the lock held, also for an entry
// that has left already.
func (c *cache) drop(e *entry) {
	e.timer.Stop()
	if e.isCached {
		delete(c.entries, e.key)
		e.isCached = false
	}
	if c.opened[e.key] == e {
		delete(c.opened, e.key)
		c.bytes -= len(e.plain.Reveal())
	}
	e.wipeIfUnused()
}

func (e *entry) wipeIfUnused() {
	if !e.isCached && e.waiting == 0 {
		e.plain.Wipe()
		e.plain = secret.Bytes{}
	}
}

func (c *cache) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.opened)
}
