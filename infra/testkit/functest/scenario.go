package functest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"signalbox.dev/infra/testkit/faults"
)

// Scenario is one kind of request in one situation.
type Scenario struct {
	Name string
	// Status is that of the answer without a fault.
	Status int
	// Calls are the calls that the request makes without a fault, in any order, and
	// RoundTrips is how many of them the caller waits for one after another.
	Calls      []string
	RoundTrips int
	// Set makes resources of its own for each request.
	Set func(testing.TB) Case
	// Except lists the faults that end in another status than faults in general do:
	// 500 where they stay, Status where the next attempt does not meet them.
	Except []Exception
}

// Case is one request, and what must hold after it.
type Case struct {
	Env   *Env
	Event Event
	// Meanwhile are harmless faults, for what happens at the same time.
	Meanwhile []faults.Rule
	// Check checks what is stored after the request that met a fault.
	Check func(t testing.TB, first Answer)
	// Settled checks it after the same request was sent again, without a fault.
	Settled func(t testing.TB, first, again Answer)
}

// Exception is a group of faults, and the statuses with which a request may end
// that meets one of them. An empty member covers all.
type Exception struct {
	Call   string // such as "UpdateItem limit#"
	Fault  string
	Always bool // only where the fault stays
	Status []int
}

func (e Exception) covers(p planned) bool {
	return (e.Call == "" || e.Call == p.step.name()) &&
		(e.Fault == "" || e.Fault == p.faultKind.name) &&
		(!e.Always || p.always)
}

// ExceptCall returns the exceptions for a call whose failure does not matter:
// the request ends with the status, or with a 500 where time ran out for all its
// calls at once.
func ExceptCall(call string, status int) []Exception {
	return []Exception{
		{Call: call, Fault: "deadline", Status: []int{status, 500}},
		{Call: call, Fault: "deadline, applied", Status: []int{status, 500}},
		{Call: call, Status: []int{status}},
	}
}

// CheckCost checks which calls a request made, in any order, and how many round
// trips they took. The log line must contain the same.
func CheckCost(t testing.TB, a Answer, roundTrips int, calls ...string) {
	t.Helper()
	made, want := callNames(a), slices.Sorted(slices.Values(calls))
	if !slices.Equal(made, want) {
		t.Errorf("calls %s, want %s", strings.Join(made, ", "), strings.Join(want, ", "))
	}
	if a.Line["aws_calls"] != float64(len(a.Calls)) || a.Line["round_trips"] != float64(roundTrips) {
		t.Errorf("the log line has %v calls, %v round trips; want %d, %d",
			a.Line["aws_calls"], a.Line["round_trips"], len(a.Calls), roundTrips)
	}
}

// step is one call that a request makes: the n-th of its operation and kind.
type step struct {
	operation, kind string
	n               int
}

func stepOf(c faults.Call) step {
	s := step{c.Operation, c.Kind, c.Number}
	if c.Kind != "" {
		s.n = c.OfKind
	}
	return s
}

// name leaves out which of several similar calls it is.
func (s step) name() string { return strings.TrimSpace(s.operation + " " + s.kind) }

func (s step) String() string { return fmt.Sprintf("%s %d", s.name(), s.n) }

// stepsOf returns the different calls among the attempts, in the order in which
// they were first made.
func stepsOf(calls []faults.Call) []step {
	var steps []step
	for _, c := range calls {
		if s := stepOf(c); !slices.Contains(steps, s) {
			steps = append(steps, s)
		}
	}
	return steps
}

// planned is a fault that a call is to meet.
type planned struct {
	step      step
	faultKind faultKind
	always    bool // all attempts of it and of all later calls of the kind meet it
}

func (p planned) String() string {
	how := "once"
	if p.always {
		how = "always"
	}
	return fmt.Sprintf("%s: %s, %s", p.step, p.faultKind.name, how)
}

// patience is how often a request may meet a fault that stays before its time
// runs out: some calls are repeated for as long as there is time.
const patience = 6

// rule returns the fault for an instance.
func (p planned) rule(f *Instance) faults.Rule {
	rule := faults.Rule{Operation: p.step.operation, Kind: p.step.kind, Call: p.step.n, Onwards: p.always, Fault: p.faultKind.fault(f)}
	if p.always {
		rule.Fault = untilTimeIsUp(f, rule.Fault)
	} else {
		rule.Attempt = 1
	}
	return rule
}
