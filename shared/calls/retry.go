package calls

import (
	"context"
	"crypto/rand"
	"errors"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	// attempts is how often the SDK makes a call, the first time included.
	attempts = 3

	// quota is how many retries a client may make before calls succeed again. Each call
	// that succeeds at once earns a part of a retry: 1 of retryCost tokens.
	quota     = 100
	retryCost = 5

	// The bounds of the first pause. They double with each attempt, up to maxPause.
	failurePause  = 50 * time.Millisecond
	throttlePause = 500 * time.Millisecond
	conflictPause = 25 * time.Millisecond
	maxPause      = time.Second
)

// Retryer makes the retry policy of a client: three attempts, and backoff between them.
// Beside the SDK's own rules it retries a malformed response, a throttled transaction, and
// TransactionConflictException: DynamoDB refuses a single write while a transaction
// changes the same item. Each client needs its own Retryer, because it keeps a quota of
// retries. The SDK's own is 35 after other failures than throttles: in a process that serves
// all accounts, one bad second would take the retries of all. Every call of the client must be safe to make twice.
func Retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.RateLimiter = ratelimit.NewTokenRateLimit(quota * retryCost)
		o.RetryCost, o.ThrottlingRetryCost, o.NoRetryIncrement = retryCost, retryCost, 1
		o.Backoff = retry.BackoffDelayerFunc(backoff)
		o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
			if IsMalformed(err) || Code(err) == "TransactionConflictException" || WhyCancelled(err) == Throttled {
				return aws.TrueTernary
			}
			return aws.UnknownTernary
		}))
	})
}

// BoundAttempts is an API option for SDK clients: each attempt of a call ends after the
// duration, and the next one may be made. The context bounds them all.
func BoundAttempts(attempt time.Duration) func(*middleware.Stack) error {
	bound := middleware.FinalizeMiddlewareFunc("BoundAttempts",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			bounded, cancel := context.WithTimeout(ctx, attempt)
			defer cancel()
			out, metadata, err := next.HandleFinalize(bounded, in)
			if err != nil && ctx.Err() == nil && bounded.Err() != nil {
				err = os.ErrDeadlineExceeded // the SDK does not retry its own
			}
			return out, metadata, err
		})
	return func(stack *middleware.Stack) error { return stack.Finalize.Insert(bound, "Retry", middleware.After) }
}

// backoff is the pause between two attempts of the SDK: attempt, from 1, failed with err.
// The whole pause is random, because clients that failed together must not return
// together. It is longer after a throttle. Unlike the SDK's own there is no pause if the first
// attempt lost its connection: the service may be fine if an idle connection died.
func backoff(attempt int, err error) (time.Duration, error) {
	switch {
	case attempt <= 1 && lostConnection(err):
		return 0, nil
	case isThrottle(err):
		return jitter(throttlePause, attempt), nil
	default:
		return jitter(failurePause, attempt), nil
	}
}

// Pause waits before a retry that the SDK does not make. attempt, from 1, is the number of
// attempts so far. The pause is random like backoff's. The error is the context's; only
// the context ends the retries.
func Pause(ctx context.Context, attempt int) error {
	return Wait(ctx, jitter(conflictPause, attempt))
}

// Wait returns after the duration, or with the context's error.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err()
}

// jitter is a random pause, evenly distributed from 0 to the bound of this attempt. It
// uses crypto/rand, because a test can seed that.
func jitter(longest time.Duration, attempt int) time.Duration {
	longest = min(longest<<min(max(attempt, 1)-1, 10), maxPause)
	drawn, _ := rand.Int(rand.Reader, big.NewInt(int64(longest))) // the reader never fails
	return time.Duration(drawn.Int64())
}

// lostConnection reports whether the connection ended before a response. A connection
// that could not be opened, and a time-out, are other failures.
func lostConnection(err error) bool {
	_, failed := errors.AsType[*smithyhttp.RequestSendError](err)
	network, known := errors.AsType[net.Error](err)
	late := known && network.Timeout()
	return failed && !late && !IsUnsent(err)
}

func isThrottle(err error) bool {
	return retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err).Bool() || WhyCancelled(err) == Throttled
}

// DecideRetries returns the retryer with another decision whether the SDK retries a call that
// failed with err. again is the retryer's own decision.
func DecideRetries(of aws.Retryer, decide func(err error, again bool) bool) aws.Retryer {
	return retryer{of, decide}
}

type retryer struct {
	aws.Retryer

	decide func(err error, again bool) bool
}

func (r retryer) IsErrorRetryable(err error) bool {
	return r.decide(err, r.Retryer.IsErrorRetryable(err))
}
