package limits

import "time"

// At gives the limiter a clock.
func (l *Limiter) At(now func() time.Time) *Limiter {
	l.now = now
	return l
}

// Interval and Tolerance are what the algorithm counts with.
func (r Rate) Burst() int64             { return r.burst }
func (r Rate) Interval() time.Duration  { return r.interval }
func (r Rate) Tolerance() time.Duration { return r.tolerance() }

// Remembered is how many callers an instance remembers at most, Remembers how
// many it does.
const Remembered = remembered

func (l *Limiter) Remembers() int { return len(l.seen.tat) }
