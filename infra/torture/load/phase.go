package load

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The names of the phases.
const (
	capacity  = "capacity"
	sustained = "sustained"
	overload  = "overload"
	recovery  = "recovery"
	settling  = "settling"
)

// Phase is a time of one rate, and what was answered to the requests that were
// due in it. It may be written from many goroutines at once.
type Phase struct {
	Name     string
	Rate     float64
	Duration time.Duration
	// Shedding says that requests may be refused.
	Shedding bool

	begun time.Time

	mu         sync.Mutex
	operations [operations]*Operation
	samples    []sample
}

// String says what is being done.
func (p *Phase) String() string {
	rate := fmt.Sprintf("%.0f requests a second", p.Rate)
	if p.Rate == 0 {
		rate = "as many requests as are answered"
	}
	return fmt.Sprintf("%s: %s for %v", p.Name, rate, p.Duration.Round(time.Second))
}

// Operation is what came of the requests of one kind.
type Operation struct {
	// Sent were sent. NotSent were due while too many had no answer.
	Sent, NotSent int
	// Statuses counts answers; 0 stands for none.
	Statuses map[int]int

	latency *hdrhistogram.Histogram // in microseconds
}

// sample is one request: when it was due in its phase, and what it took.
type sample struct {
	due, took time.Duration
	success   bool
}

// The range of latencies that are told apart, and to how many digits. A client
// gives up after a minute.
const (
	longest = 2 * time.Minute
	digits  = 3
)

func newOperation() *Operation {
	return &Operation{Statuses: make(map[int]int), latency: hdrhistogram.New(1, longest.Microseconds(), digits)}
}

// Quantile is the latency within which so many of a hundred were answered.
func (o *Operation) Quantile(percent float64) time.Duration {
	return time.Duration(o.latency.ValueAtQuantile(percent)) * time.Microsecond
}

// Max is the longest latency.
func (o *Operation) Max() time.Duration { return time.Duration(o.latency.Max()) * time.Microsecond }

// Answers counts answers by status: "201: 90, 429: 3".
func (o *Operation) Answers() string {
	var all []string
	for _, status := range slices.Sorted(maps.Keys(o.Statuses)) {
		all = append(all, fmt.Sprintf("%s: %d", statusText(status), o.Statuses[status]))
	}
	return strings.Join(all, ", ")
}

func (p *Phase) of(o operation) *Operation {
	if p.operations[o] == nil {
		p.operations[o] = newOperation()
	}
	return p.operations[o]
}

// skipped notes a request that was not sent, which is no success either.
func (p *Phase) skipped(o operation, due time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of(o).NotSent++
	p.samples = append(p.samples, sample{due: due.Sub(p.begun)})
}

// answered notes an answer that has just come, or will not come any more.
func (p *Phase) answered(o operation, due time.Time, status int) {
	took := min(time.Since(due), longest)
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.of(o)
	of.Sent++
	of.Statuses[status]++
	_ = of.latency.RecordValue(took.Microseconds()) // it is in range
	p.samples = append(p.samples, sample{due: due.Sub(p.begun), took: took, success: o.expects(status)})
}

// All is what came of all requests together, once all answers are there.
func (p *Phase) All() *Operation {
	whole := newOperation()
	for _, o := range p.operations {
		if o == nil {
			continue
		}
		whole.Sent += o.Sent
		whole.NotSent += o.NotSent
		for status, count := range o.Statuses {
			whole.Statuses[status] += count
		}
		whole.latency.Merge(o.latency)
	}
	return whole
}

// broken are the promises that were not kept, once all answers are there.
func (p *Phase) broken() []string {
	var all []string
	for i, o := range p.operations {
		if o == nil {
			continue
		}
		if o.NotSent > 0 && !p.Shedding {
			all = append(all, fmt.Sprintf("%s: %d × %v not sent, as answers were missing", p.Name, o.NotSent, operation(i)))
		}
		for _, status := range slices.Sorted(maps.Keys(o.Statuses)) {
			if !p.allows(operation(i), status) {
				all = append(all, fmt.Sprintf("%s: %d × %v was answered with %s", p.Name, o.Statuses[status], operation(i), statusText(status)))
			}
		}
	}
	return all
}

// allows reports whether the answer may be given. Even in overload there is one:
// the gateway's time-out is shorter than a client's.
func (p *Phase) allows(o operation, status int) bool {
	refused := status == http.StatusTooManyRequests || status == http.StatusInternalServerError
	return o.expects(status) || p.Shedding && refused
}

func statusText(status int) string {
	if status == 0 {
		return "nothing"
	}
	return fmt.Sprint(status)
}
