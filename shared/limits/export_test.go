package limits

import "time"

// At sets the clock.
func (l *Limiter) At(now func() time.Time) *Limiter {
	l.now = now
	return l
}

// MaxCallers bounds the callers whose arrival times an instance keeps.
const MaxCallers = maxCallers

// Keep keeps a caller's arrival time, and returns the kept one.
func (l *Limiter) Keep(caller string, tat int64) int64 {
	l.seen.keep(caller, tat)
	return l.seen.of(caller)
}

// Callers counts the callers whose arrival times are kept.
func (l *Limiter) Callers() int { return len(l.seen.tat) }
