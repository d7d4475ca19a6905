package limits_test

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/test/awsmodel"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/limits"
)

// fixture is a control table in the model of DynamoDB. All limiters on it have one manual clock.
type fixture struct {
	*testing.T
	world   *awsmodel.World
	db      *dynamodb.Client
	now     int64 // Unix nanoseconds
	calls   int
	between func() // runs before each call but the first, like a concurrent request
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, world: awsmodel.New(awsmodel.Config{Tables: []string{"control"}}), now: 1_800_000_000_000_000_000}
	f.db = client(f)
	return f
}

// Do implements aws.HTTPClient.
func (f *fixture) Do(r *http.Request) (*http.Response, error) {
	f.calls++
	if f.calls > 1 && f.between != nil {
		f.between()
	}
	return f.world.Do(r)
}

func client(network aws.HTTPClient) *dynamodb.Client {
	return dynamodb.NewFromConfig(aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
		HTTPClient: network, Retryer: calls.Retryer,
	})
}

func (f *fixture) newLimiter(name string) *limits.Limiter {
	return limits.New(f.db, "control", name).At(func() time.Time { return time.Unix(0, f.now) })
}

// take returns the decision about caller "a" and how many calls it cost.
func (f *fixture) take(l *limits.Limiter, rate limits.Rate) (limits.Decision, int) {
	f.Helper()
	f.calls = 0
	d, err := l.Take(f.Context(), "a", rate)
	kit.Must(f, err)
	return d, f.calls
}

// rows reads and writes the table beside the calls that the fixture counts.
func (f *fixture) rows() kit.Rows { return kit.Rows{DB: client(f.world), Table: "control"} }

// item returns the item of caller "a" in limiter "test", or 0 if there is none.
func (f *fixture) item() (tat, exp int64) {
	var item struct{ TAT, Exp int64 }
	kit.Must(f, attributevalue.UnmarshalMap(f.rows().Get(f, kit.Key("limit#test#a")), &item))
	return item.TAT, item.Exp
}

// expire removes that item, as DynamoDB does.
func (f *fixture) expire() {
	f.Helper()
	f.between = nil
	f.rows().Delete(f, kit.Key("limit#test#a"))
}

func mustRate(t *testing.T, perMinute, burst int64) limits.Rate {
	t.Helper()
	rate, err := limits.NewRate(perMinute, burst)
	kit.Must(t, err)
	return rate
}

// gcra is the textbook algorithm in one process, in nanoseconds.
type gcra struct{ tat, interval, burst int64 }

func newGCRA(perMinute, burst int64) *gcra {
	interval := int64(time.Minute) / perMinute
	if int64(time.Minute)%perMinute > 0 {
		interval++ // never more than perMinute pass
	}
	return &gcra{interval: interval, burst: burst}
}

func (g *gcra) take(now int64) limits.Decision {
	latest := now + (g.burst-1)*g.interval
	d := limits.Decision{Allowed: g.tat <= latest, Burst: g.burst, Window: time.Duration(g.burst * g.interval)}
	if d.Allowed {
		g.tat = max(g.tat, now) + g.interval
	} else {
		d.RetryAfter = time.Duration(g.tat - latest)
	}
	if d.Allowed && g.tat <= latest {
		d.Remaining = (latest-g.tat)/g.interval + 1
	}
	d.Reset = time.Duration(max(0, g.tat-now))
	return d
}

func TestRatesHaveBounds(t *testing.T) {
	for _, c := range [][2]int64{{0, 1}, {-1, 1}, {1, 0}, {1, -1}, {limits.MaxPerMinute + 1, 1}, {1, limits.MaxBurst + 1}} {
		if rate, err := limits.NewRate(c[0], c[1]); err == nil {
			t.Errorf("%d a minute, burst %d: %+v", c[0], c[1], rate)
		}
	}
}

// Every decision is GCRA's, for any rate and clock, any memory of two instances, and any
// request of the other instance between two updates.
func TestTakeIsGCRA(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test that repeats
	rates := [][2]int64{{60, 20}, {60, 1}, {7, 3}, {limits.MaxPerMinute, limits.MaxBurst}, {1, limits.MaxBurst}, {limits.MaxPerMinute, 1}}
	for range 20 {
		rates = append(rates, [2]int64{1 + random.Int64N(100_000), 1 + random.Int64N(12)})
	}
	for _, r := range rates {
		f, rate, g := newFixture(t), mustRate(t, r[0], r[1]), newGCRA(r[0], r[1])
		instances := [2]*limits.Limiter{f.newLimiter("test"), f.newLimiter("test")}
		take := func(instance int) int {
			t.Helper()
			now := f.now
			got, calls := f.take(instances[instance], rate)
			if diff := cmp.Diff(g.take(now), got); diff != "" { // after the limiter: a rival wrote before it did
				t.Fatalf("%d a minute, burst %d (-GCRA +limiter):\n%s", r[0], r[1], diff)
			}
			return calls
		}
		for range 40 {
			// Not at all, by one interval, or by anything: clocks of two machines differ.
			f.now += [3]int64{0, g.interval, random.Int64N(2*g.interval+3) - g.interval/4}[random.IntN(3)]
			if _, exp := f.item(); random.IntN(8) == 0 && exp < f.now/int64(time.Second) {
				f.expire()
			}
			instance, rival := random.IntN(2), random.IntN(4) == 0
			f.between = nil
			if rival {
				f.between = func() {
					f.between = nil
					take(1 - instance)
				}
			}
			if calls := take(instance); !rival && calls > 2 {
				t.Fatalf("%d updates for one decision", calls)
			}
			if tat, exp := f.item(); tat > 0 && (exp <= tat/int64(time.Second) || exp > tat/int64(time.Second)+g.burst*g.interval/int64(time.Second)+2) {
				t.Fatalf("the item expires at %d s, its arrival time is %d ns", exp, tat)
			}
		}
	}
}

// A damaged item is a fault that is logged, and no rate that was exceeded.
func TestADamagedItemIsAnError(t *testing.T) {
	for _, value := range []types.AttributeValue{calls.Text("soon"), &types.AttributeValueMemberNULL{Value: true}} {
		f := newFixture(t)
		row := kit.Key("limit#test#a")
		row["tat"] = value
		kit.Rows{DB: f.db, Table: "control"}.Put(t, row)
		if d, err := f.newLimiter("test").Take(t.Context(), "a", mustRate(t, 60, 20)); !errors.Is(err, calls.ErrDamaged) {
			t.Errorf("%T: %+v, %v", value, d, err)
		}
		if d, err := f.newLimiter("another").Take(t.Context(), "a", mustRate(t, 60, 20)); err != nil || !d.Allowed {
			t.Errorf("in another limiter: %+v, %v", d, err)
		}
	}
}

// No request passes because its item was removed between two updates.
func TestAnItemRemovedBetweenUpdatesGrantsNothing(t *testing.T) {
	f := newFixture(t)
	l, rate := f.newLimiter("test"), mustRate(t, 60, 20)
	f.take(f.newLimiter("test"), rate)
	f.between = func() { f.expire() }
	got, _ := f.take(l, rate)
	if diff := cmp.Diff(limits.Decision{Burst: 20, Window: 20 * time.Second, RetryAfter: 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d, _ := f.take(l, rate); !d.Allowed || d.Remaining != 19 {
		t.Errorf("then %+v", d)
	}
}
