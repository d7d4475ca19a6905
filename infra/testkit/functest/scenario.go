package functest

import (
	"fmt"
	"testing"

	"signalbox.dev/infra/testkit/faults"
)

// Scenario is one kind of request in one situation.
type Scenario struct {
	Name string
	// Status is how the request ends that meets no fault.
	Status int
	// Set makes a world of its own for each request.
	Set func(testing.TB) Case
	// Except lists the faults that end otherwise than faults do in general: 500
	// where they stay, Status where the next attempt does without them.
	Except []Exception
}

// Case is a world for one request, and what must hold in it.
type Case struct {
	Env   *Env
	Event Event
	// Meanwhile are things that happen besides: faults of the kind that harm nobody.
	Meanwhile []faults.Rule
	// Check judges the world after the request that met a fault.
	Check func(t testing.TB, first Answer)
	// Settled judges it after the same request was sent again, without a fault.
	Settled func(t testing.TB, first, again Answer)
}

// Exception is a group of faults and the statuses that a request may end with
// which meets one of them; an empty member stands for all.
type Exception struct {
	Step   string // such as "UpdateItem limit#"
	Fault  string
	Always bool // only where the fault stays
	Status []int
}

func (e Exception) covers(p planned) bool {
	return (e.Step == "" || e.Step == p.step.name()) &&
		(e.Fault == "" || e.Fault == p.faultKind.name) &&
		(!e.Always || p.always)
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

// name leaves out which of several like calls it is.
func (s step) name() string {
	if s.kind == "" {
		return s.operation
	}
	return s.operation + " " + s.kind
}

func (s step) String() string { return fmt.Sprintf("%s %d", s.name(), s.n) }

// stepsOf are the different calls among the attempts, in the order in which they
// were first made.
func stepsOf(calls []faults.Call) []step {
	var steps []step
	seen := map[step]bool{}
	for _, c := range calls {
		if s := stepOf(c); !seen[s] {
			seen[s] = true
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
	return fmt.Sprintf("%s %s %s", p.step, p.faultKind.name, how)
}

// patience is how often a request may meet a fault that stays before its time
// runs out: some calls are made again for as long as there is time.
const patience = 6

// rule is the fault for an instance.
func (p planned) rule(f *Instance) faults.Rule {
	rule := faults.Rule{Operation: p.step.operation, Kind: p.step.kind, Call: p.step.n, Onwards: p.always}
	fault := p.faultKind.fault(f)
	if !p.always {
		rule.Attempt, rule.Fault = 1, fault
		return rule
	}
	rule.Fault = untilTimeIsUp(f, fault)
	return rule
}
