package limits_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/shared/limits"
)

// fakeItem is one item of DynamoDB that supports the limiter's two updates.
// TestTakeAgreesWithTheModel shows that DynamoDB does the same.
type fakeItem struct {
	exists   bool
	tat, exp int64
	calls    int
	between  func() // runs before each call but the first, as another caller might
}

// UpdateItem is DynamoDB's.
func (f *fakeItem) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	f.calls++
	if f.calls > 1 && f.between != nil {
		f.between()
	}
	value := func(name string) int64 {
		n, err := strconv.ParseInt(in.ExpressionAttributeValues[name].(*types.AttributeValueMemberN).Value, 10, 64)
		if err != nil {
			panic(err)
		}
		return n
	}
	var holds bool
	var tat int64
	switch *in.ConditionExpression + "; " + *in.UpdateExpression {
	case "attribute_not_exists(tat) OR tat <= :now; SET tat = :next, exp = :exp":
		holds, tat = !f.exists || f.tat <= value(":now"), value(":next")
	case "tat > :now AND tat <= :latest; SET tat = tat + :interval, exp = :exp":
		holds, tat = f.exists && f.tat > value(":now") && f.tat <= value(":latest"), f.tat+value(":interval")
	default:
		return nil, fmt.Errorf("unknown update %s on %s", *in.UpdateExpression, *in.ConditionExpression)
	}
	if !holds {
		return nil, &types.ConditionalCheckFailedException{Item: f.attributes()}
	}
	f.exists, f.tat, f.exp = true, tat, value(":exp")
	return &dynamodb.UpdateItemOutput{Attributes: f.attributes()}, nil
}

func (f *fakeItem) attributes() map[string]types.AttributeValue {
	if !f.exists {
		return nil
	}
	return map[string]types.AttributeValue{"tat": &types.AttributeValueMemberN{Value: strconv.FormatInt(f.tat, 10)}}
}

// model is GCRA as it is written down, in one process, in nanoseconds.
type model struct{ tat, interval, burst int64 }

func newModel(perMinute, burst int64) *model {
	interval := int64(time.Minute) / perMinute
	if int64(time.Minute)%perMinute > 0 {
		interval++ // never more than perMinute pass
	}
	return &model{interval: interval, burst: burst}
}

func (m *model) take(now int64) limits.Decision {
	latest := now + (m.burst-1)*m.interval
	d := limits.Decision{Allowed: m.tat <= latest, Burst: m.burst, Window: time.Duration(m.burst * m.interval)}
	if d.Allowed {
		m.tat = max(m.tat, now) + m.interval
	} else {
		d.RetryAfter = time.Duration(m.tat - latest)
	}
	if d.Allowed && m.tat <= latest {
		d.Remaining = (latest-m.tat)/m.interval + 1
	}
	d.Reset = time.Duration(max(0, m.tat-now))
	return d
}

// Of each step, two bytes are how far the clock moves, in 256ths of an interval, of
// which 32 are subtracted (clocks of two machines differ); the third adds
// nanoseconds, and its top bits a rival, the loss of the item, and which of two
// instances takes the request; the rival takes one on the other.
const (
	stepBytes = 3
	backwards = 32
	rival     = 0x80
	loss      = 0x40
	second    = 0x20
)

// FuzzTake compares every decision with the model, whatever the rate, the clock,
// what each instance remembers, and which other client writes between two updates;
// and without a clock that goes back or an item lost early, no stretch of time
// lets more requests through than burst and rate.
func FuzzTake(f *testing.F) {
	onTime, sameInstant := []byte{1, 32, 0}, []byte{0, 32, 0}
	f.Add(int64(60), int64(20), bytes.Repeat(sameInstant, 22))
	f.Add(int64(60), int64(1), bytes.Repeat(onTime, 5))
	f.Add(int64(7), int64(3), append(bytes.Repeat(sameInstant, 4), 1, 31, 63, 0, 33, 1, 0, 0, 0))
	f.Add(int64(limits.MaxPerMinute), int64(limits.MaxBurst), bytes.Repeat(sameInstant, 8))
	f.Add(int64(1), int64(limits.MaxBurst), bytes.Repeat(sameInstant, 8))
	for _, bounds := range [][2]int64{{0, 1}, {-1, 1}, {1, 0}, {1, -1}, {limits.MaxPerMinute + 1, 1}, {1, limits.MaxBurst + 1}} {
		f.Add(bounds[0], bounds[1], []byte{})
	}
	f.Add(int64(60), int64(2), bytes.Repeat([]byte{0, 32, rival}, 3))
	f.Add(int64(60), int64(9), bytes.Repeat([]byte{0, 32, rival, 0, 32, second}, 4))
	f.Add(int64(60), int64(9), append(bytes.Repeat(sameInstant, 8), 0, 32, second))
	f.Add(int64(1), int64(1), bytes.Repeat([]byte{0xff, 0xff, loss}, 3))
	f.Add(int64(60), int64(9), bytes.Repeat([]byte{0, 32, 0, 0, 32, rival | loss, 2, 32, second}, 4))
	f.Fuzz(func(t *testing.T, perMinute, burst int64, steps []byte) {
		rate, err := limits.NewRate(perMinute, burst)
		if possible := perMinute >= 1 && perMinute <= 1_000_000 && burst >= 1 && burst <= 100_000; possible != (err == nil) {
			t.Fatalf("NewRate(%d, %d): %v", perMinute, burst, err)
		}
		if err == nil {
			play(t, rate, newModel(perMinute, burst), steps)
		}
	})
}

// play takes the steps with the limiter and with the model.
func play(t *testing.T, rate limits.Rate, m *model, steps []byte) {
	t.Helper()
	var passed []int64
	steady := true // no clock goes back, and no item is lost that counts
	c, item := newClock(), &fakeItem{}
	instances := [2]*limits.Limiter{limits.New(item, "control", "test").At(c.read), limits.New(item, "control", "test").At(c.read)}
	take := func(l *limits.Limiter) {
		t.Helper()
		now := c.now.Load()
		got := mustTake(t, l, "one caller", rate)
		if want := m.take(now); got != want { // after the limiter: a rival wrote before it did
			t.Fatalf("decision (-model +limiter):\n%s", cmp.Diff(want, got))
		}
		if got.Allowed {
			passed = append(passed, now)
		}
	}
	for len(steps) >= stepBytes && len(passed) < 64 {
		move, flags := int64(binary.BigEndian.Uint16(steps))-backwards, steps[2]
		steps = steps[stepBytes:]
		c.now.Add(move*m.interval/256 + int64(flags&0x1f))
		early := false
		if flags&loss != 0 && item.exists {
			// DynamoDB removes what has expired, sooner or later: that must not show.
			if early = !steady || item.exp >= c.now.Load()/int64(time.Second); early {
				m.tat = 0
			}
			item.exists = false
		}
		steady = steady && move >= 0 && !early
		asked := flags & second / second
		item.calls, item.between = 0, nil
		if flags&rival != 0 {
			item.between = func() {
				item.between = nil
				take(instances[1-asked])
			}
		}
		take(instances[asked])
		if flags&rival == 0 && !early && item.calls > 2 {
			t.Fatalf("%d updates for one decision", item.calls)
		}
		if item.exists && item.exp <= item.tat/int64(time.Second) {
			t.Fatalf("the item expires at %d s, its arrival time is %d ns", item.exp, item.tat)
		}
	}
	// Between any two requests that passed, both counted, at most the burst and what
	// the time allows.
	for first := range passed {
		for last := first; steady && last < len(passed); last++ {
			if allowed := (passed[last]-passed[first])/m.interval + m.burst; allowed < int64(last-first+1) {
				t.Fatalf("%d requests passed within %d ns", last-first+1, passed[last]-passed[first])
			}
		}
	}
}

// TestTakeAgreesWithTheModel takes random steps on the engine, with two instances. In
// every other run the clocks go back at times; in the others they move by nothing or by
// one interval, so that an arrival time is at each of its two bounds exactly.
func TestTakeAgreesWithTheModel(t *testing.T) {
	c := newClock()
	first, _ := newLimiter(t, c, "test")
	other, _ := newLimiter(t, c, "test")
	instances := []*limits.Limiter{first, other}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test that repeats
	for run := range 20 {
		perMinute, burst, caller := 1+random.Int64N(100_000), 1+random.Int64N(12), newCaller()
		rate, m := mustRate(t, perMinute, burst), newModel(perMinute, burst)
		for step := range 40 {
			if run%2 == 0 {
				c.now.Add(m.interval * (random.Int64N(3) / 2))
			} else {
				c.now.Add(random.Int64N(2*m.interval+3) - m.interval/4)
			}
			want, got := m.take(c.now.Load()), mustTake(t, instances[random.IntN(2)], caller, rate)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%d a minute, burst %d, step %d (-model +limiter):\n%s", perMinute, burst, step, diff)
			}
		}
	}
}
