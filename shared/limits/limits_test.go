package limits_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/limits"
)

// clock is a time that a test moves.
type clock struct{ now atomic.Int64 }

func (c *clock) read() time.Time { return time.Unix(0, c.now.Load()) }

func (c *clock) forward(d time.Duration) { c.now.Add(int64(d)) }

func newLimiter(t *testing.T) (*limits.Limiter, *clock) {
	t.Helper()
	engines := testkit.Start(t)
	c := &clock{}
	c.now.Store(time.Now().UnixNano())
	return limits.New(dynamodb.NewFromConfig(engines.Config), engines.Tables.Control, "test").At(c.read), c
}

func someone() string { return string(ids.New[ids.Account]()) }

func mustRate(t *testing.T, perMinute, burst int64) limits.Rate {
	t.Helper()
	rate, err := limits.NewRate(perMinute, burst)
	if err != nil {
		t.Fatal(err)
	}
	return rate
}

func mustTake(t *testing.T, l *limits.Limiter, caller string, rate limits.Rate) limits.Decision {
	t.Helper()
	d, err := l.Take(t.Context(), caller, rate)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestABurstPassesFromIdleAndNoMore(t *testing.T) {
	l, c := newLimiter(t)
	rate, caller := mustRate(t, 60, 20), someone()
	for i := range int64(20) {
		want := limits.Decision{Allowed: true, Burst: 20, Remaining: 19 - i, Window: 20 * time.Second, Reset: time.Duration(i+1) * time.Second}
		if diff := cmp.Diff(want, mustTake(t, l, caller, rate)); diff != "" {
			t.Errorf("request %d (-want +got):\n%s", i+1, diff)
		}
	}
	refused := limits.Decision{Burst: 20, Window: 20 * time.Second, Reset: 20 * time.Second, RetryAfter: time.Second}
	for range 3 { // refusals cost nothing
		if diff := cmp.Diff(refused, mustTake(t, l, caller, rate)); diff != "" {
			t.Errorf("request 21 (-want +got):\n%s", diff)
		}
	}
	c.forward(time.Second - 1)
	if d := mustTake(t, l, caller, rate); d.Allowed || d.RetryAfter != 1 {
		t.Errorf("a nanosecond early: %+v", d)
	}
	c.forward(1)
	if d := mustTake(t, l, caller, rate); !d.Allowed {
		t.Errorf("after the time it was told: %+v", d)
	}
	if d := mustTake(t, l, someone(), rate); !d.Allowed || d.Remaining != 19 {
		t.Errorf("another caller: %+v", d)
	}
	c.forward(20 * time.Second)
	if d := mustTake(t, l, caller, rate); !d.Allowed || d.Remaining != 19 {
		t.Errorf("idle again: %+v", d)
	}
}

func TestLimitersOfOtherNamesCountApart(t *testing.T) {
	engines := testkit.Start(t)
	db, rate, caller := dynamodb.NewFromConfig(engines.Config), mustRate(t, 1, 1), someone()
	for _, name := range []string{"one", "another"} {
		l := limits.New(db, engines.Tables.Control, name)
		if first, second := mustTake(t, l, caller, rate), mustTake(t, l, caller, rate); !first.Allowed || second.Allowed {
			t.Errorf("%s: %+v, then %+v", name, first, second)
		}
	}
}

func TestAtOnceExactlyTheBurstPasses(t *testing.T) {
	first, c := newLimiter(t)
	second, _ := newLimiter(t)
	instances := []*limits.Limiter{first, second.At(c.read)}
	rate, caller := mustRate(t, 1, 20), someone()
	var allowed atomic.Int64
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			d, err := instances[i%2].Take(context.WithoutCancel(t.Context()), caller, rate)
			if err != nil {
				t.Error(err)
			}
			if d.Allowed {
				allowed.Add(1)
			}
		})
	}
	all.Wait()
	if allowed.Load() != 20 {
		t.Errorf("%d of 60 requests at one instant passed, want 20", allowed.Load())
	}
}

// reference is GCRA as it is written down, in one process.
type reference struct{ tat time.Time }

func (r *reference) take(now time.Time, rate limits.Rate) bool {
	if r.tat.After(now.Add(rate.Tolerance())) {
		return false
	}
	if r.tat.Before(now) {
		r.tat = now
	}
	r.tat = r.tat.Add(rate.Interval())
	return true
}

func TestTakeAgreesWithTheReference(t *testing.T) {
	first, c := newLimiter(t)
	second, _ := newLimiter(t)
	instances := []*limits.Limiter{first, second.At(c.read)}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test that repeats
	for range 30 {
		rate := mustRate(t, 1+random.Int64N(100_000), 1+random.Int64N(12))
		caller, model := someone(), &reference{}
		for step := range 40 {
			// Around the interval, where decisions change; back at times, as clocks of
			// two machines do.
			c.forward(time.Duration(random.Int64N(2*int64(rate.Interval())+3)) - rate.Interval()/4)
			now := c.read()
			want := model.take(now, rate)
			got := mustTake(t, instances[random.IntN(2)], caller, rate)
			if got.Allowed != want {
				t.Fatalf("rate %+v, step %d: allowed %v, the reference says %v", rate, step, got.Allowed, want)
			}
			if got.Remaining < 0 || got.Remaining >= rate.Burst() || got.Reset < 0 || got.Allowed != (got.RetryAfter == 0) {
				t.Fatalf("rate %+v, step %d: %+v", rate, step, got)
			}
		}
	}
}

// Nothing that passes leaves an item that is gone a moment later; whatever took
// it away, no slot is granted on that.
func TestAnItemThatIsGoneMeanwhileGrantsNothing(t *testing.T) {
	c, item := &clock{}, &paper{}
	c.now.Store(time.Now().UnixNano())
	l, rate := limits.New(item, "control", "test").At(c.read), mustRate(t, 60, 20)
	mustTake(t, l, someone(), rate)
	item.calls, item.between = 0, func() { item.item = nil }
	want := limits.Decision{Burst: 20, Window: 20 * time.Second, RetryAfter: 1}
	if diff := cmp.Diff(want, mustTake(t, l, someone(), rate)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	item.between = nil
	if d := mustTake(t, l, someone(), rate); !d.Allowed || d.Remaining != 19 {
		t.Errorf("then %+v", d)
	}
}

func TestRatesOutOfBounds(t *testing.T) {
	for _, r := range [][2]int64{{0, 1}, {-1, 1}, {1, 0}, {1, -1}, {limits.MaxPerMinute + 1, 1}, {1, limits.MaxBurst + 1}} {
		if _, err := limits.NewRate(r[0], r[1]); err == nil {
			t.Errorf("NewRate(%d, %d) is accepted", r[0], r[1])
		}
	}
	// Seven do not divide a minute: never more than seven in one.
	if got := 7 * mustRate(t, 7, 1).Interval(); got < time.Minute || got > time.Minute+7 {
		t.Errorf("seven intervals take %v", got)
	}
	if got := mustRate(t, limits.MaxPerMinute, limits.MaxBurst).Interval(); got != 60*time.Microsecond {
		t.Errorf("the shortest interval is %v", got)
	}
}

// An instance that remembers where a caller stands writes once for each request.
func TestInARowEachRequestIsOneUpdate(t *testing.T) {
	c, item := &clock{}, &paper{}
	c.now.Store(time.Now().UnixNano())
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

// Of any number of callers an instance remembers some.
func TestTheMemoryIsBounded(t *testing.T) {
	c, item := &clock{}, &paper{}
	l, rate := limits.New(item, "control", "test").At(c.read), mustRate(t, limits.MaxPerMinute, limits.MaxBurst)
	for range 3 * limits.Remembered {
		caller := someone()
		mustTake(t, l, caller, rate)
		item.calls = 0
		if mustTake(t, l, caller, rate); item.calls != 1 {
			t.Fatal("the caller of a moment ago is forgotten")
		}
	}
	if n := l.Remembers(); n != limits.Remembered {
		t.Errorf("%d callers are remembered, want %d", n, limits.Remembered)
	}
}

// Whichever update is the first, what becomes of it is not known.
func TestAfterAFaultNothingElseIsTried(t *testing.T) {
	engines := testkit.Start(t)
	broken := faults.Wrap(engines.Config.HTTPClient)
	engines.Config.HTTPClient = broken
	l, caller, rate := limits.New(dynamodb.NewFromConfig(engines.Config), engines.Tables.Control, "test"), someone(), mustRate(t, 1, 20)
	for call := 1; call <= 3; call += 2 {
		broken.Inject(faults.Rule{Operation: "UpdateItem", Call: call, Fault: faults.Refuse()})
		if d, err := l.Take(t.Context(), caller, rate); err == nil || d.Allowed {
			t.Errorf("update %d failed: %+v", call, d)
		}
		mustTake(t, l, caller, rate)
	}
}

// What throttles the caller's own item is the caller's doing; what throttles more
// is not, and must be heard of.
func TestOnlyAThrottledItemIsAnExceededRate(t *testing.T) {
	engines := testkit.Start(t)
	broken := faults.Wrap(engines.Config.HTTPClient)
	engines.Config.HTTPClient = broken
	l := limits.New(dynamodb.NewFromConfig(engines.Config), engines.Tables.Control, "test")
	const item, table, account = "TableWriteKeyRangeThroughputExceeded", "TableWriteMaxOnDemandThroughputExceeded", "TableWriteAccountLimitExceeded"
	for _, code := range []string{"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"} {
		for _, c := range []struct {
			reasons []string
			own     bool
		}{
			{[]string{item}, true},
			{[]string{item, item}, true},
			{nil, false},
			{[]string{""}, false},
			{[]string{table}, false},
			{[]string{account}, false},
			{[]string{"TableWriteProvisionedThroughputExceeded"}, false},
			{[]string{item, table}, false},
			{[]string{account, item}, false},
		} {
			broken.Heal()
			broken.Inject(faults.Rule{Fault: faults.ThrottleFor(code, c.reasons...)})
			d, err := l.Take(t.Context(), someone(), mustRate(t, 60, 20))
			if d.Allowed || (err == nil) != c.own || c.own && d.RetryAfter != time.Second {
				t.Errorf("%s %q: %+v, %v", code, c.reasons, d, err)
			}
		}
	}
	broken.Heal()
	broken.Inject(faults.Rule{Fault: faults.Refuse()})
	if d, err := l.Take(t.Context(), someone(), mustRate(t, 60, 20)); err == nil || d.Allowed {
		t.Errorf("out of reach: %+v", d)
	}
}
