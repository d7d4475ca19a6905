package calls

import (
	"context"
	"crypto/rand"
	"errors"
	"math/big"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	// attempts is how often the SDK makes a call, the first time included.
	attempts = 3

	// The longest first pause. Each attempt doubles it, up to maxPause.
	failurePause  = 50 * time.Millisecond
	throttlePause = 500 * time.Millisecond
	conflictPause = 25 * time.Millisecond
	maxPause      = time.Second
)

// Retryer makes the retry policy of a client: three attempts, and Backoff between them.
// Beside the SDK's own rules it retries a malformed response, a throttled transaction, and
// TransactionConflictException, by which DynamoDB refuses a single write while a
// transaction changes the same item. Each client has one, because it keeps a quota of
// retries. Every call of the client must be safe to make twice.
func Retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		// Without this the SDK's own is used. It pauses for exactly MaxBackoff at every
		// attempt if that is a second or less: all clients would return at one instant.
		o.Backoff = retry.BackoffDelayerFunc(Backoff)
		o.Retryables = append(o.Retryables,
			retryIf(IsMalformed),
			retry.RetryableErrorCode{Codes: map[string]struct{}{"TransactionConflictException": {}}},
			retryIf(func(err error) bool { return WhyCancelled(err) == Throttled }),
		)
	})
}

// Backoff is the pause between two attempts of the SDK: attempt, from 1, failed with err.
// It is random as a whole, because clients that failed together must not return together.
// It is longer after a throttle. There is none if the first attempt lost its connection:
// a connection that died while it was idle says nothing about the service.
func Backoff(attempt int, err error) (time.Duration, error) {
	switch {
	case attempt <= 1 && lostConnection(err):
		return 0, nil
	case isThrottle(err):
		return jitter(throttlePause, attempt), nil
	default:
		return jitter(failurePause, attempt), nil
	}
}

// Pause waits before a call is made again for a reason that the SDK does not retry:
// attempt, from 1, is how often it was made. The pause is as random as Backoff's. The
// error is the context's, which bounds how often.
func Pause(ctx context.Context, attempt int) error {
	select {
	case <-ctx.Done():
	case <-time.After(jitter(conflictPause, attempt)):
	}
	return ctx.Err()
}

// jitter is a random pause, evenly distributed from nothing to the longest of this
// attempt. It is drawn from crypto/rand because a simulation can replay that.
func jitter(longest time.Duration, attempt int) time.Duration {
	longest = min(longest<<min(max(attempt, 1)-1, 10), maxPause)
	drawn, _ := rand.Int(rand.Reader, big.NewInt(int64(longest))) // the reader never fails
	return time.Duration(drawn.Int64())
}

// lostConnection reports whether the connection ended before a response. A connection
// that could not be opened, and a time-out, are other failures.
func lostConnection(err error) bool {
	_, unsent := errors.AsType[*smithyhttp.RequestSendError](err)
	var network net.Error
	late := errors.As(err, &network) && network.Timeout()
	operation, failed := errors.AsType[*net.OpError](err)
	return unsent && !late && (!failed || operation.Op != "dial")
}

func isThrottle(err error) bool {
	return retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err).Bool() || WhyCancelled(err) == Throttled
}

// Reconnect returns an HTTP client that opens a new connection for the call after one
// that failed: the connections in its pool may have died with that one, as when Lambda
// froze the process, and a repeated call must not try them in turn.
func Reconnect(client *awshttp.BuildableClient) aws.HTTPClient {
	r := new(reconnecting)
	r.current.Store(client)
	return r
}

type reconnecting struct {
	current atomic.Pointer[awshttp.BuildableClient]
}

// Do implements aws.HTTPClient.
func (r *reconnecting) Do(request *http.Request) (*http.Response, error) {
	client := r.current.Load()
	response, err := client.Do(request)
	if err != nil {
		// A copy shares no connection with it.
		r.current.CompareAndSwap(client, client.WithTimeout(client.GetTimeout()))
	}
	return response, err
}

func retryIf(applies func(error) bool) retry.IsErrorRetryable {
	return retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
		if applies(err) {
			return aws.TrueTernary
		}
		return aws.UnknownTernary
	})
}

// Deciding returns the retryer with another decision: again is its own, whether the SDK
// makes a call again that failed with err.
func Deciding(of aws.Retryer, decide func(err error, again bool) bool) aws.Retryer {
	return retryer{of, decide}
}

type retryer struct {
	aws.Retryer

	decide func(err error, again bool) bool
}

// IsErrorRetryable implements aws.Retryer.
func (r retryer) IsErrorRetryable(err error) bool {
	return r.decide(err, r.Retryer.IsErrorRetryable(err))
}
