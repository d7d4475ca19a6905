package limits

import "time"

// At sets the clock.
func (l *Limiter) At(now func() time.Time) *Limiter {
	l.now = now
	return l
}

// Remembered bounds the callers that an instance remembers; Remembers counts them.
const Remembered = maxCallers

// Remember remembers a caller's arrival time and returns the remembered one.
func (l *Limiter) Remember(caller string, tat int64) int64 {
	l.seen.keep(caller, tat)
	return l.seen.of(caller)
}

func (l *Limiter) Remembers() int { return len(l.seen.tat) }
