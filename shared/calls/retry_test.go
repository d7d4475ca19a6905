package calls_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/shared/calls"
)

// Every pause is drawn evenly from 0 to its bound, and a test can repeat it.
func TestPausesAreRandomWithinTheirBounds(t *testing.T) {
	const drawn = 1000
	policy, lost := calls.Retryer(), &smithyhttp.RequestSendError{Err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}}
	bounds := func(ms ...time.Duration) []time.Duration { return ms }
	for name, c := range map[string]struct {
		err    error
		bounds []time.Duration // of each attempt, in milliseconds
	}{
		"a failure":             {errors.New("any"), bounds(50, 100, 200, 400, 800, 1000, 1000)},
		"a throttle":            {&types.ProvisionedThroughputExceededException{}, bounds(500, 1000, 1000)},
		"a lost connection":     {lost, bounds(0, 100, 200)},
		"a time-out":            {&smithyhttp.RequestSendError{Err: &net.OpError{Op: "read", Err: context.DeadlineExceeded}}, bounds(50)},
		"a refused connection":  {&smithyhttp.RequestSendError{Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, bounds(50)},
		"a throttled write set": {&types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{Code: new("ThrottlingError")}}}, bounds(500)},
	} {
		pauses := func(attempt int) (all []time.Duration) {
			cryptotest.SetGlobalRandom(t, 1)
			for range drawn {
				pause, err := policy.RetryDelay(attempt, c.err)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, pause)
			}
			return all
		}
		for i, bound := range c.bounds {
			bound *= time.Millisecond
			var quarters [4]int
			all := pauses(i + 1)
			for _, pause := range all {
				if pause < 0 || pause > bound || pause == bound && bound > 0 {
					t.Fatalf("%s, attempt %d: a pause of %v, want less than %v", name, i+1, pause, bound)
				}
				if bound > 0 {
					quarters[4*pause/bound]++
				}
			}
			for _, n := range quarters {
				if bound > 0 && (n < drawn/5 || n > drawn*3/10) {
					t.Errorf("%s, attempt %d: the pauses up to %v are not even: %v of %d", name, i+1, bound, quarters, drawn)
				}
			}
			if diff := cmp.Diff(all, pauses(i+1)); diff != "" {
				t.Errorf("%s, attempt %d: other pauses with the same randomness", name, i+1)
			}
		}
	}
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for attempt := 1; attempt <= 100; attempt++ { // far beyond what a shift can hold
			bound, began := min(25*time.Millisecond<<min(attempt-1, 10), time.Second), time.Now()
			if err := calls.Pause(t.Context(), attempt); err != nil || time.Since(began) >= bound {
				t.Errorf("Pause(%d): %v after %v", attempt, err, time.Since(began))
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := calls.Pause(ctx, 100); !errors.Is(err, context.Canceled) {
			t.Errorf("Pause after the end of the context: %v", err)
		}
	})
}

// An outage takes 100 retries of a client, throttled or not. Each five calls that succeed at
// once earn one more.
func TestQuotaOfRetries(t *testing.T) {
	for _, err := range []error{errors.New("any"), &types.ProvisionedThroughputExceededException{}} {
		r := calls.Retryer()
		granted := func() (retries int) {
			for ; retries < 1000; retries++ {
				if _, refused := r.GetRetryToken(t.Context(), err); refused != nil {
					return retries
				}
			}
			return retries
		}
		first := granted()
		for range 15 {
			if done := r.GetInitialToken(); done(nil) != nil {
				t.Error("no token for a success")
			}
		}
		if second := granted(); first != 100 || second != 3 {
			t.Errorf("%v: %d retries, then %d after 15 successes; want 100 and 3", err, first, second)
		}
	}
}
