package limits_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/limits"
)

// clock is a manual clock.
type clock struct{ now atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.now.Store(1_800_000_000_000_000_000)
	return c
}

func (c *clock) read() time.Time { return time.Unix(0, c.now.Load()) }

func (c *clock) forward(d time.Duration) { c.now.Add(int64(d)) }

func newLimiter(t *testing.T, c *clock, name string) (*limits.Limiter, *faults.Transport) {
	t.Helper()
	engines := testkit.Start(t)
	transport := faults.Wrap(engines.Config.HTTPClient)
	engines.Config.HTTPClient = transport
	return limits.New(dynamodb.NewFromConfig(engines.Config), engines.Tables.Control, name).At(c.read), transport
}

func newCaller() string { return string(ids.New[ids.Account]()) }

func mustRate(t *testing.T, perMinute, burst int64) limits.Rate {
	t.Helper()
	rate, err := limits.NewRate(perMinute, burst)
	testkit.Must(t, err)
	return rate
}

func mustTake(t *testing.T, l *limits.Limiter, caller string, rate limits.Rate) limits.Decision {
	t.Helper()
	d, err := l.Take(t.Context(), caller, rate)
	testkit.Must(t, err)
	return d
}

// The rest of what a burst allows is the model's, in FuzzTake.
func TestABurstIsTheCallersOwn(t *testing.T) {
	c := newClock()
	l, _ := newLimiter(t, c, "test")
	named, _ := newLimiter(t, c, "another")
	rate, caller := mustRate(t, 60, 1), newCaller()
	mustTake(t, l, caller, rate)
	refused := limits.Decision{Burst: 1, Window: time.Second, Reset: time.Second, RetryAfter: time.Second}
	for range 3 { // a refusal writes nothing
		if diff := cmp.Diff(refused, mustTake(t, l, caller, rate)); diff != "" {
			t.Errorf("request 2 (-want +got):\n%s", diff)
		}
	}
	if other, another := mustTake(t, l, newCaller(), rate), mustTake(t, named, caller, rate); !other.Allowed || !another.Allowed {
		t.Errorf("another caller: %+v; a limiter of another name: %+v", other, another)
	}
}

// No request that passes leaves an item that is gone a moment later; whatever removed
// it, no request passes for that.
func TestAnItemRemovedBetweenUpdatesGrantsNothing(t *testing.T) {
	c, item := newClock(), &fakeItem{}
	l, rate := limits.New(item, "control", "test").At(c.read), mustRate(t, 60, 20)
	mustTake(t, l, newCaller(), rate)
	item.calls, item.between = 0, func() { item.exists = false }
	want := limits.Decision{Burst: 20, Window: 20 * time.Second, RetryAfter: 1}
	if diff := cmp.Diff(want, mustTake(t, l, newCaller(), rate)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	item.between = nil
	if d := mustTake(t, l, newCaller(), rate); !d.Allowed || d.Remaining != 19 {
		t.Errorf("then %+v", d)
	}
}

// An instance that remembers where a caller stands writes once for each request.
func TestConsecutiveRequestsAreOneUpdateEach(t *testing.T) {
	c, item := newClock(), &fakeItem{}
	l, rate := limits.New(item, "control", "test").At(c.read), mustRate(t, 60, 20)
	for i := range 22 { // the last two are refused
		item.calls = 0
		if d := mustTake(t, l, "one caller", rate); d.Allowed != (i < 20) || item.calls != 1 {
			t.Errorf("request %d: %+v after %d updates", i+1, d, item.calls)
		}
	}
	c.forward(20 * time.Second) // to the arrival time itself
	item.calls = 0
	if d := mustTake(t, l, "one caller", rate); !d.Allowed || item.calls != 1 {
		t.Errorf("idle again: %+v after %d updates", d, item.calls)
	}
}

func TestTheMemoryIsBounded(t *testing.T) {
	c, item := newClock(), &fakeItem{}
	l, rate := limits.New(item, "control", "test").At(c.read), mustRate(t, limits.MaxPerMinute, limits.MaxBurst)
	for range 3 * limits.Remembered {
		caller := newCaller()
		mustTake(t, l, caller, rate)
		item.calls = 0
		if mustTake(t, l, caller, rate); item.calls != 1 {
			t.Fatal("the latest caller is forgotten")
		}
	}
	if n := l.Remembers(); n != limits.Remembered {
		t.Errorf("%d callers are remembered, want %d", n, limits.Remembered)
	}
}

// An update that failed may have been applied, whichever of the two came first.
func TestAfterAFaultNoOtherUpdateIsTried(t *testing.T) {
	l, broken := newLimiter(t, newClock(), "test")
	caller, rate := newCaller(), mustRate(t, 1, 20)
	for call := 1; call <= 3; call += 2 {
		broken.Inject(faults.Rule{Operation: "UpdateItem", Call: call, Fault: faults.Refuse()})
		if d, err := l.Take(t.Context(), caller, rate); err == nil || d.Allowed {
			t.Errorf("update %d failed: %+v", call, d)
		}
		mustTake(t, l, caller, rate)
	}
	broken.Heal()
	broken.Inject(faults.Rule{Fault: faults.EmptyAnswer()})
	if d, err := l.Take(t.Context(), newCaller(), rate); err == nil || d.Allowed {
		t.Errorf("after an empty response: %+v", d)
	}
}

// Only the caller's own requests throttle the caller's item: they are refused after one
// call, because more of them would throttle it more. Any other throttle is retried, and
// is then an error, which the operator sees.
func TestOnlyAThrottledItemIsAnExceededRate(t *testing.T) {
	const item, table, account = "TableWriteKeyRangeThroughputExceeded", "TableWriteMaxOnDemandThroughputExceeded", "TableWriteAccountLimitExceeded"
	for _, code := range []string{"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"} {
		for _, c := range []struct {
			reasons []string
			calls   int
		}{
			{[]string{item}, 1},
			{[]string{item, item}, 1},
			{nil, 3},
			{[]string{""}, 3},
			{[]string{table}, 3},
			{[]string{account}, 3},
			{[]string{"TableWriteProvisionedThroughputExceeded"}, 3},
			{[]string{item, table}, 3},
			{[]string{account, item}, 3},
		} {
			synctest.Test(t, func(t *testing.T) { // no fault reaches an engine
				broken := faults.Wrap(nil)
				broken.Inject(faults.Rule{Fault: faults.ThrottleFor(code, c.reasons...)})
				db := dynamodb.NewFromConfig(aws.Config{
					Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
					HTTPClient: broken, Retryer: calls.Retryer,
				})
				own := c.calls == 1
				d, err := limits.New(db, "control", "test").Take(t.Context(), newCaller(), mustRate(t, 60, 20))
				if d.Allowed || (err == nil) != own || own && d.RetryAfter != time.Second || len(broken.Calls()) != c.calls {
					t.Errorf("%s %q: %+v, %v after %d calls, want %d", code, c.reasons, d, err, len(broken.Calls()), c.calls)
				}
			})
		}
	}
}
