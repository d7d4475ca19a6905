package limits

import "time"

// At sets the clock.
func (l *Limiter) At(now func() time.Time) *Limiter {
	l.now = now
	return l
}

// Remembered bounds the callers that an instance remembers; Remembers counts them.
const Remembered = maxCallers

func (l *Limiter) Remembers() int { return len(l.seen.tat) }
