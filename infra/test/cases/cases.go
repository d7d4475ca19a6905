// Package cases plays a request to a function, or a command of the operator, with each fault of
// each of its calls to AWS, and while other operations run. Only tests import it.
//
// A Case (this file) stores rows and files, once for all its Environments (Prepared), and returns a
// Scenario: an operation and those that run at the same time. The operation runs once to learn its
// calls. Then it runs again in trials (trial.go), each in a new Environment (environment.go) and
// with one disturbance (client.go):
//
//   - each fault of the catalogue (catalogue.go) at a call, once and at each attempt. All are
//     tried once for each kind of call, the main faults at every call;
//   - a concurrent operation that runs completely before and after each call, also while an answer
//     is lost;
//   - for an operation that waits, a request that is in flight until after each call.
//
// The catalogue says how a fault must end, and the operation where it knows better. Each trial
// judges the result, the log line, the audit line and what is stored. An operation that did not end
// like the one without a fault, or left something else, is then repeated without a fault, and must
// finish. The calls and the round trips are compared with the expected ones.
//
// The Environment is a model of AWS in virtual time (testing/synctest): no machine decides and
// waiting costs nothing. With -engines=all each trial runs on the real engines too; with
// -engines=main only those without a fault, with a concurrent operation, or with a main fault, once
// for each kind of call. The test fails if model and engines differ: in the result, in what is
// stored or in the calls.
//
// An Overlap (overlap.go) runs operations at the same time, with delays from a seed.
package cases

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Operation is a request to a function (Environment.Request), or a command of the operator.
type Operation struct {
	Name string
	// Run runs the operation once. Its calls go through the client; it ends with the context.
	Run func(context.Context, aws.HTTPClient) Result
	// Want is the Text of the result, Calls are the expected calls, by kind, and Rounds is the
	// number of round trips: each without a disturbance. An empty Want is not checked; without
	// Calls, neither are the Rounds.
	Want   string
	Calls  []string
	Rounds int
	// Failed is the Text of the result if a call that is needed fails.
	Failed string
	// OptionalCalls are kinds of calls whose failure changes nothing.
	OptionalCalls []string
	// FaultOutcomes returns the results that are right after a fault, or nil if the catalogue
	// decides. always means that each attempt meets it; alone is the result without a disturbance.
	FaultOutcomes func(c Call, f *Fault, always bool, alone string) []string
	// Limit is the time that the operation has on the model, 10 s by default.
	Limit time.Duration
	// Unconditional means that its writes need no condition.
	Unconditional bool
	// ConcurrentOnly means that the operation meets no faults of its own.
	ConcurrentOnly bool
}

// Result is what the user of an operation sees.
type Result struct {
	// Text is compared: between the trials of an operation, and between model and engines.
	Text         string
	Shown        any // for the case's own judge
	Began, Ended time.Time
}

// Concurrent is another operation at the same time.
type Concurrent struct {
	Operation Operation
	// AfterConcurrent is the result of the case's operation if this one came first, by default
	// the result alone.
	AfterConcurrent string
	// AfterLostAnswer is the result if this one came between a call whose answer was lost and its
	// repetition, by default AfterConcurrent.
	AfterLostAnswer string
	// OwnOutcomes are results of this operation that are right besides its result alone.
	OwnOutcomes []string
	// InFlight means that this operation is a request, and the case's operation waits for such
	// requests. It begins first, and is stopped before its last call until after each call of the
	// case's operation.
	InFlight bool
}

// Scenario is what a case plays in one Environment.
type Scenario struct {
	Operation  Operation
	Concurrent []Concurrent
	// Judge judges the results so far and what is stored. It is called when all have ended,
	// and again after the operation was repeated. Without it, only results are judged.
	Judge func([]Outcome)
}

// Outcome is an operation that ended.
type Outcome struct {
	Operation string
	Again     bool // it was repeated, without a fault
	Fault     *Fault
	Result    Result
}

// Case is a situation and an operation in it.
type Case struct {
	Name       string
	Versioning string // of the bucket: "", "Enabled" or "Suspended"
	Page       int    // the number of items that a query or scan returns at most; 0 for AWS's own
	// SkipEngines is the reason why the case is not played on the engines.
	SkipEngines string
	// RandomOrder means that the operation goes by the order of ids or hashes, which are random on
	// engines. There the judge alone judges a part of it, and one with a concurrent operation.
	RandomOrder bool
	SetUp       func(*Environment) Scenario
}

// Suite plays the cases of a package.
type Suite struct {
	Cases    []Case
	Overlaps []Overlap
}

// Run plays the suite.
func (s Suite) Run(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a trial makes much garbage and keeps no memory
	tried := map[string]bool{}
	for _, c := range s.Cases {
		t.Run(c.Name, func(t *testing.T) {
			r := runner{t: t, Case: c, tried: tried, others: map[string]trace{}, setup: &setup{c.Versioning, c.Page, 0, map[int]prepared{}}}
			r.run()
		})
	}
	for _, o := range s.Overlaps {
		t.Run(o.Name, func(t *testing.T) { o.play(t, *night/time.Duration(len(s.Overlaps))) })
	}
}

// concurrent returns the concurrent operation of the name, or an empty one.
func (s *Scenario) concurrent(name string) Concurrent {
	for _, c := range s.Concurrent {
		if c.Operation.Name == name {
			return c
		}
	}
	return Concurrent{}
}

func (s *Scenario) judge(outcomes []Outcome) {
	if s.Judge != nil {
		s.Judge(outcomes)
	}
}
