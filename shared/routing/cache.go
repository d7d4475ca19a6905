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
	// keptFor is how long an opened key stays in memory, counted from before KMS
	// was asked.
	keptFor = time.Minute
	// openTimeout bounds one opening, which may outlive the request that began it:
	// others may be waiting for the same key.
	openTimeout = 10 * time.Second
)

// cacheKey identifies a seal and the place where it was found, whole: a credential
// that was replaced, moved or rewrapped has another.
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

// cache keeps opened keys, bounded in number and age, and wipes those that leave.
type cache struct {
	most int

	mu      sync.Mutex
	entries map[cacheKey]*entry
}

// entry is a key that is being opened, or is open. It is wiped when it has left the
// cache and no request is about to copy it.
type entry struct {
	key     cacheKey
	begun   time.Time
	done    chan struct{} // closed once plain or err is there
	plain   secret.Bytes
	err     error
	isOpen  bool        // whether plain is there
	timer   *time.Timer // ends its time in the cache
	kept    bool        // whether it is in the cache
	waiting int         // requests that are about to copy it
}

func newCache(most int) *cache { return &cache{most: most, entries: make(map[cacheKey]*entry)} }

// get returns a copy of the key, opened at most once for all who ask at the same
// time. Errors are not kept.
func (c *cache) get(ctx context.Context, key cacheKey, open func(context.Context) (secret.Bytes, error)) (secret.Bytes, error) {
	if c.most < 0 {
		return open(ctx)
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

// join finds the key's entry or begins to open it.
func (c *cache) join(ctx context.Context, key cacheKey, open func(context.Context) (secret.Bytes, error)) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		e.waiting++
		return e
	}
	e := &entry{key: key, begun: time.Now(), done: make(chan struct{}), kept: true, waiting: 1}
	c.entries[key] = e
	e.timer = time.AfterFunc(keptFor, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.drop(e)
	})
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
		defer cancel()
		plain, err := open(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		defer close(e.done)
		e.plain, e.err, e.isOpen = plain, err, err == nil
		if err != nil {
			c.drop(e)
		}
		e.wipeIfUnused()
		c.trim()
	}()
	return e
}

func (c *cache) leave(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.waiting--
	e.wipeIfUnused()
}

// trim drops the oldest open keys until the bound is kept. Keys that are still being
// opened do not count: slow or failing calls to KMS must not drive out open ones.
func (c *cache) trim() {
	for {
		var oldest *entry
		open := 0
		for _, e := range c.entries {
			if !e.isOpen {
				continue
			}
			open++
			if oldest == nil || e.begun.Before(oldest.begun) {
				oldest = e
			}
		}
		if open <= c.most {
			return
		}
		c.drop(oldest)
	}
}

// drop removes an entry from the cache.
func (c *cache) drop(e *entry) {
	e.timer.Stop()
	if e.kept {
		delete(c.entries, e.key)
	}
	e.kept = false
	e.wipeIfUnused()
}

func (e *entry) wipeIfUnused() {
	if !e.kept && e.waiting == 0 {
		e.plain.Wipe()
		e.plain, e.isOpen = secret.Bytes{}, false
	}
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		c.drop(e)
	}
}
