package calls

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// Retryables are errors that the SDK's retryer does not retry by itself: an
// malformed response, TransactionConflictException, which a plain write gets that met
// a transaction on the same item, and a
// throttled transaction. They are for clients whose every call may be made twice.
func Retryables() []retry.IsErrorRetryable {
	return []retry.IsErrorRetryable{
		retryIf(IsMalformed),
		retry.RetryableErrorCode{Codes: map[string]struct{}{"TransactionConflictException": {}}},
		retryIf(func(err error) bool { return WhyCancelled(err) == Throttled }),
	}
}

func retryIf(applies func(error) bool) retry.IsErrorRetryable {
	return retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
		if applies(err) {
			return aws.TrueTernary
		}
		return aws.UnknownTernary
	})
}

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
