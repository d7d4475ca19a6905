package load

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/torture/caller"
)

const ms = time.Millisecond

// A server that does one thing at a time, for 100 ms each, gets a request every
// 50 ms. A caller who waited for each answer before the next request would
// measure 100 ms throughout, and never see the line that strangers stand in.
func TestLatencyCountsFromWhenARequestWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := make(chan struct{}, 1)
		draw := func() request {
			return request{readJob, func(context.Context) caller.Answer {
				busy <- struct{}{}
				time.Sleep(100 * ms)
				<-busy
				return caller.Answer{Status: http.StatusOK}
			}}
		}
		p := &Phase{Rate: 20, Duration: 300 * ms, begun: time.Now()}
		g := newGenerator(10)
		if err := g.run(t.Context(), p, draw); err != nil {
			t.Fatal(err)
		}
		g.wait()
		got := make(map[time.Duration]time.Duration)
		for _, s := range p.samples {
			got[s.due] = s.took
		}
		want := map[time.Duration]time.Duration{0: 100 * ms, 50 * ms: 150 * ms, 100 * ms: 200 * ms, 150 * ms: 250 * ms, 200 * ms: 300 * ms, 250 * ms: 350 * ms}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("latencies by due instant (-want +got):\n%s", diff)
		}
	})
}

// What is due while too many are without an answer is counted, not sent.
func TestOutstandingRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		draw := func() request {
			return request{create, func(context.Context) caller.Answer {
				time.Sleep(time.Hour)
				return caller.Answer{}
			}}
		}
		p := &Phase{Name: "stalled", Rate: 10, Duration: time.Second, begun: time.Now()}
		g := newGenerator(3)
		if err := g.run(t.Context(), p, draw); err != nil {
			t.Fatal(err)
		}
		g.wait()
		o := p.operations[create]
		if o.Sent != 3 || o.NotSent != 7 {
			t.Errorf("%d sent, %d not sent; want 3 and 7", o.Sent, o.NotSent)
		}
		want := []string{
			"stalled: 7 × POST byok not sent, as answers were missing",
			"stalled: 3 × POST byok was answered with nothing",
		}
		if diff := cmp.Diff(want, p.broken()); diff != "" {
			t.Errorf("broken (-want +got):\n%s", diff)
		}
	})
}

// A schedule that was missed is made up for: the rate stays what it was.
func TestAMissedInstantKeepsItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var due, late []time.Duration
		err := pace(t.Context(), 100, 50*ms, func(at time.Time) {
			due, late = append(due, at.Sub(start)), append(late, time.Since(at))
			if len(due) == 1 {
				time.Sleep(25 * ms)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]time.Duration{0, 10 * ms, 20 * ms, 30 * ms, 40 * ms}, due); diff != "" {
			t.Errorf("due (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]time.Duration{0, 15 * ms, 5 * ms, 0, 0}, late); diff != "" {
			t.Errorf("late (-want +got):\n%s", diff)
		}
		if took := time.Since(start); took != 50*ms {
			t.Errorf("the phase took %v", took)
		}
	})
}

func TestPhasesAllowWhatIsPromised(t *testing.T) {
	for _, c := range []struct {
		operation        operation
		status           int
		steady, shedding bool
	}{
		{readJob, 200, true, true},
		{readJob, 304, false, false},
		{create, 201, true, true},
		{createOnce, 200, false, false},
		{deleteFile, 404, false, false},
		{deleteNothing, 404, true, true},
		{deleteAgain, 404, true, true},
		{create, 429, false, true},
		{create, 500, false, true},
		{create, 503, false, false},
		{create, 0, false, false},
	} {
		steady, shedding := (&Phase{}).allows(c.operation, c.status), (&Phase{Shedding: true}).allows(c.operation, c.status)
		if steady != c.steady || shedding != c.shedding {
			t.Errorf("%v, %d: allowed %v, and %v when shedding; want %v, %v", c.operation, c.status, steady, shedding, c.steady, c.shedding)
		}
	}
}
