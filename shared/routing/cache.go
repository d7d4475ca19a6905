package routing

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
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

// entry is a key that is being opened, or is open.
type entry struct {
	begun time.Time
	done  chan struct{} // closed once plain or err is there
	plain []byte
	err   error
	timer *time.Timer // wipes it
}

func newCache(most int) *cache { return &cache{most: most, entries: make(map[cacheKey]*entry)} }

// get returns a copy of the key, opened at most once for all who ask at the same
// time. Errors are not kept.
func (c *cache) get(ctx context.Context, key cacheKey, open func(context.Context) (secret.Bytes, error)) (secret.Bytes, error) {
	if c.most < 0 {
		return open(ctx)
	}
	for {
		e := c.entry(ctx, key, open)
		select {
		case <-e.done:
		case <-ctx.Done():
			return secret.Bytes{}, ErrUnavailable
		}
		c.mu.Lock()
		plain, err := bytes.Clone(e.plain), e.err
		c.mu.Unlock()
		// A key that was wiped since is opened again.
		if plain != nil || err != nil {
			return secret.New(plain), err
		}
	}
}

// entry finds the key's entry or begins to open it.
func (c *cache) entry(ctx context.Context, key cacheKey, open func(context.Context) (secret.Bytes, error)) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		return e
	}
	if len(c.entries) >= c.most {
		c.evictOldest()
	}
	e := &entry{begun: time.Now(), done: make(chan struct{})}
	c.entries[key] = e
	e.timer = time.AfterFunc(keptFor, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.evict(key, e)
	})
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
		defer cancel()
		plain, err := open(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		defer close(e.done)
		e.plain, e.err = plain.Reveal(), err
		if c.entries[key] != e { // cleared meanwhile
			clear(e.plain)
			e.plain, e.err = nil, ErrUnavailable
		}
		if e.err != nil {
			c.evict(key, e)
		}
	}()
	return e
}

// evictOldest makes room. Keys that are still being opened stay, so that those who
// wait for them get them: as many as there are requests may exceed the bound.
func (c *cache) evictOldest() {
	var oldest cacheKey
	var first *entry
	for key, e := range c.entries {
		if e.plain != nil && (first == nil || e.begun.Before(first.begun)) {
			oldest, first = key, e
		}
	}
	if first != nil {
		c.evict(oldest, first)
	}
}

// evict wipes an entry and forgets it.
func (c *cache) evict(key cacheKey, e *entry) {
	e.timer.Stop()
	clear(e.plain)
	e.plain = nil
	if c.entries[key] == e {
		delete(c.entries, key)
	}
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.entries {
		c.evict(key, e)
	}
}
