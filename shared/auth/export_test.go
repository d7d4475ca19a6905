package auth

import "time"

// SetClock stops the registry's clock at now.
func (r *Registry) SetClock(now time.Time) { r.now = func() time.Time { return now } }

// SetClock stops the verifier's clock at now.
func (v *Verifier) SetClock(now time.Time) { v.now = func() time.Time { return now } }
