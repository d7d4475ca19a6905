package auth

import "time"

// SetClock makes the registry believe that it is always now.
func (r *Registry) SetClock(now time.Time) { r.now = func() time.Time { return now } }

// SetClock makes the verifier believe that it is always now.
func (v *Verifier) SetClock(now time.Time) { v.now = func() time.Time { return now } }
