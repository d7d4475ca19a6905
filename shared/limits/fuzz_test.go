package limits_test

import (
	"bytes"
	"encoding/binary"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/shared/limits"
)

// exact is GCRA in numbers without bounds.
type exact struct {
	tat, interval, tolerance, burst *big.Int
}

func newExact(perMinute, burst int64) *exact {
	// The interval in whole nanoseconds, rounded up: never more than perMinute pass.
	interval, rest := new(big.Int).DivMod(big.NewInt(int64(time.Minute)), big.NewInt(perMinute), new(big.Int))
	if rest.Sign() > 0 {
		interval.Add(interval, big.NewInt(1))
	}
	return &exact{
		tat: new(big.Int), interval: interval, burst: big.NewInt(burst),
		tolerance: new(big.Int).Mul(big.NewInt(burst-1), interval),
	}
}

// take is the decision on a request at the instant.
func (e *exact) take(instant int64) limits.Decision {
	now, zero := big.NewInt(instant), new(big.Int)
	limit := new(big.Int).Add(now, e.tolerance)
	allowed := e.tat.Cmp(limit) <= 0
	if allowed {
		if e.tat.Cmp(now) < 0 {
			e.tat.Set(now)
		}
		e.tat.Add(e.tat, e.interval)
	}
	ahead := new(big.Int).Sub(e.tat, now)
	if ahead.Sign() < 0 {
		ahead = zero
	}
	d := limits.Decision{
		Allowed: allowed, Burst: e.burst.Int64(),
		Window: time.Duration(new(big.Int).Mul(e.burst, e.interval).Int64()), Reset: time.Duration(ahead.Int64()),
	}
	room := new(big.Int).Sub(limit, e.tat) // until a request is too early
	if !allowed {
		d.RetryAfter = time.Duration(new(big.Int).Neg(room).Int64())
	} else if room.Sign() >= 0 {
		d.Remaining = room.Div(room, e.interval).Int64() + 1
	}
	return d
}

// Of each step: two bytes say how far the clock moves, in 256ths of an interval
// of which 32 are taken off (clocks of two machines differ); the third adds
// nanoseconds, and its top bits a rival, the loss of the item, and which of two
// instances is asked; the rival asks the other one.
const (
	stepBytes = 3
	backwards = 32
	rival     = 0x80
	loss      = 0x40
	second    = 0x20
)

// Every decision is the one of the exact algorithm, whatever the rate, the clock,
// what each instance remembers, and whoever else asks between two writes; and
// without a clock that goes back or an item lost before its time, no stretch of
// time lets more through than burst and rate.
func FuzzTake(f *testing.F) {
	onTime, sameInstant := []byte{1, 32, 0}, []byte{0, 32, 0}
	f.Add(int64(60), int64(20), bytes.Repeat(sameInstant, 22))
	f.Add(int64(60), int64(1), bytes.Repeat(onTime, 5))
	f.Add(int64(7), int64(3), append(bytes.Repeat(sameInstant, 4), 1, 31, 63, 0, 33, 1, 0, 0, 0))
	f.Add(int64(limits.MaxPerMinute), int64(limits.MaxBurst), bytes.Repeat(sameInstant, 8))
	f.Add(int64(1), int64(limits.MaxBurst), bytes.Repeat(sameInstant, 8))
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
			play(t, rate, newExact(perMinute, burst), steps)
		}
	})
}

// play takes the steps with the limiter and with the exact algorithm.
func play(t *testing.T, rate limits.Rate, model *exact, steps []byte) {
	t.Helper()
	var passed []int64
	steady := true // no clock goes back, and no item is lost that counts
	c, item := &clock{}, &paper{}
	c.now.Store(1_700_000_000_000_000_000)
	instances := [2]*limits.Limiter{}
	for i := range instances {
		instances[i] = limits.New(item, "control", "test").At(c.read)
	}
	for len(steps) >= stepBytes && len(passed) < 64 {
		move := int64(binary.BigEndian.Uint16(steps)) - backwards
		nanos, flags := int64(steps[2]&0x1f), steps[2]
		steps = steps[stepBytes:]
		c.now.Add(move*model.interval.Int64()/256 + nanos)
		now := c.now.Load()
		early := false
		if e := item.item["exp"]; flags&loss != 0 && e != nil {
			// DynamoDB removes what has expired, sooner or later: of that nothing shows.
			if early = !steady || e.Int64() >= now/int64(time.Second); early {
				model.tat.SetInt64(0)
			}
			item.item = nil
		}
		steady = steady && move >= 0 && !early
		asked := flags & second / second
		item.calls, item.between = 0, nil
		if flags&rival != 0 {
			item.between = func() {
				item.between = nil
				agree(t, instances[1-asked], rate, model, now, &passed)
			}
		}
		agree(t, instances[asked], rate, model, now, &passed)
		if flags&rival == 0 && !early && item.calls > 2 {
			t.Fatalf("%d updates for one decision", item.calls)
		}
		if e := item.item["exp"]; e != nil && e.Cmp(new(big.Int).Div(item.item["tat"], big.NewInt(int64(time.Second)))) <= 0 {
			t.Fatalf("the item expires at %d s, its arrival time is %d ns", e, item.item["tat"])
		}
	}
	if steady {
		checkWindows(t, passed, model)
	}
}

// agree takes one request. The model is asked after the limiter: a rival came
// before the write that decides.
func agree(t *testing.T, l *limits.Limiter, rate limits.Rate, model *exact, now int64, passed *[]int64) {
	t.Helper()
	got := mustTake(t, l, "one caller", rate)
	if want := model.take(now); got != want {
		t.Fatalf("decision (-exact +limiter):\n%s", cmp.Diff(want, got))
	}
	if got.Allowed {
		*passed = append(*passed, now)
	}
}

// checkWindows holds what passed against what a rate means: between any two
// requests that passed, both counted, at most the burst and what the time allows.
func checkWindows(t *testing.T, passed []int64, model *exact) {
	t.Helper()
	for first := range passed {
		for last := first; last < len(passed); last++ {
			allowed := new(big.Int).Div(big.NewInt(passed[last]-passed[first]), model.interval)
			if allowed.Add(allowed, model.burst); allowed.Cmp(big.NewInt(int64(last-first+1))) < 0 {
				t.Fatalf("%d requests passed within %d ns", last-first+1, passed[last]-passed[first])
			}
		}
	}
}
