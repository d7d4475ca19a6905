package calls

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pause waits before a call is made again for a reason the SDK does not retry:
// attempt, from 1, is how often it was made. The wait is up to 25 ms at first
// and doubles up to 400 ms; all of it is random, so that those who wait do not
// return in step. The error is the context's, which bounds how often.
func Pause(ctx context.Context, attempt int) error {
	longest := 25 * time.Millisecond << min(attempt-1, 4)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(longest)): //nolint:gosec // spreading load needs no secrecy
		return nil
	}
}
