package functest

import (
	"cmp"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"signalbox.dev/infra/testkit/faults"
)

// atOnce is how many requests are sent side by side: most wait for engines.
const atOnce = 12

var exhaustive = flag.Bool("exhaustive", false, "try every fault of a call in every scenario that makes it")

// Survive checks that every fault of every call is survived. It records the calls
// of each scenario's request without a fault. Then, for each call and each of
// faultsOf, it sends the request with that fault on the call's first attempt
// ("once") and with it on all ("always"), checks what is stored, sends the
// request again without a fault, and checks again. Calls that are made only
// because of a fault meet every fault in their turn, so none can be forgotten.
//
// A case is named after its scenario, call, fault and duration, such as
// "replay/GetItem idem# 1: answer lost, always": the first GetItem of an idem# row
// is answered, and the answer lost, at each attempt.
//
// statuses are those that the operation may answer. Minor faults of a call are
// tried in the first scenario that makes it; -exhaustive tries them in all, which
// takes three times as long.
func Survive(t *testing.T, statuses []int, scenarios ...Scenario) {
	t.Helper()
	tried := map[step]bool{}
	for _, s := range scenarios {
		t.Run(s.Name, func(t *testing.T) {
			e := enumeration{
				Scenario: s, statuses: statuses, tried: tried,
				used: map[int]bool{}, known: map[step]bool{}, found: map[step]planned{},
			}
			e.run(t)
		})
	}
}

// enumeration tries one scenario.
type enumeration struct {
	Scenario
	statuses []int
	tried    map[step]bool // calls whose minor faults were tried before

	mu    sync.Mutex
	used  map[int]bool     // exceptions that were needed
	known map[step]bool    // calls without a fault
	found map[step]planned // calls made only because of a fault, and that fault
}

func (e *enumeration) run(t *testing.T) {
	steps := e.withoutFault(t)
	var trials [][]planned
	for _, s := range steps {
		e.known[s] = true
		for _, p := range plans(s, *exhaustive || !e.tried[s]) {
			trials = append(trials, []planned{p})
		}
		e.tried[s] = true
	}
	e.try(t, trials)
	var second [][]planned
	for s, because := range e.found {
		for _, p := range plans(s, false) {
			second = append(second, []planned{because, p})
		}
	}
	e.try(t, second)
	t.Logf("%d calls, %d cases", len(e.known)+len(e.found), len(trials)+len(second))
	for i, exception := range e.Except {
		if *exhaustive && !e.used[i] {
			t.Errorf("exception %+v covers nothing", exception)
		}
	}
}

// plans returns the faults that the call may meet.
func plans(s step, minor bool) []planned {
	var all []planned
	for _, k := range faultsOf(s) {
		if k.minor && !minor {
			continue
		}
		all = append(all, planned{s, k, false})
		if !k.fatal {
			all = append(all, planned{s, k, true})
		}
	}
	return all
}

// withoutFault sends the request without a fault, twice, and returns its calls.
func (e *enumeration) withoutFault(t *testing.T) []step {
	t.Helper()
	c := e.Set(t)
	f := c.Env.Instance()
	first := f.Invoke(t, c.Event, c.Meanwhile...)
	f.Faults.Heal()
	if first.Status != e.Status {
		t.Fatalf("without a fault: status %d, want %d: %s", first.Status, e.Status, first.log)
	}
	CheckCost(t, first, e.RoundTrips, e.Calls...)
	c.Check(t, first)
	c.Settled(t, first, f.Invoke(t, c.Event.Again()))
	return stepsOf(first.Calls)
}

// try sends the request once for each of the trials.
func (e *enumeration) try(t *testing.T, trials [][]planned) {
	var all sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for _, trial := range trials {
		all.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			var names []string
			for _, p := range trial {
				names = append(names, p.String())
			}
			t.Run(strings.Join(names, ", then "), func(t *testing.T) { e.withFaults(t, trial) })
		})
	}
	all.Wait()
}

// withFaults sends the request with these faults, and again without.
func (e *enumeration) withFaults(t *testing.T, trial []planned) {
	c := e.Set(t)
	f := c.Env.Instance()
	var rules []faults.Rule
	for _, p := range trial {
		rules = append(rules, p.rule(f))
	}
	first := f.Invoke(t, c.Event, append(rules, c.Meanwhile...)...)
	met, attempts := false, []string{}
	for _, call := range first.Calls {
		how := ""
		if call.Failed {
			how = "  <- met the fault"
		}
		met = met || call.Failed && stepOf(call) == trial[len(trial)-1].step
		attempts = append(attempts, fmt.Sprintf("  %s, attempt %d%s", stepOf(call), call.Attempt, how))
	}
	defer func() {
		if t.Failed() {
			t.Logf("the request got %d after these calls to AWS:\n%s\nits log: %s", first.Status, strings.Join(attempts, "\n"), first.log)
		}
	}()
	if !met {
		t.Error("the fault was not met")
	}
	if !slices.Contains(e.statuses, first.Status) {
		t.Errorf("status %d is none of the operation's", first.Status)
	}
	if len(trial) == 1 {
		if !trial[0].always {
			e.discover(trial[0], first)
		}
		if want := e.want(trial[0]); !slices.Contains(want, first.Status) {
			t.Errorf("the request that met the fault got %d, want %d", first.Status, want)
		}
	}
	c.Check(t, first)
	f.Faults.Heal()
	c.Settled(t, first, f.Invoke(t, c.Event.Again()))
}

// want returns the statuses with which a request may end that meets the fault.
func (e *enumeration) want(p planned) []int {
	for i, exception := range e.Except {
		if exception.covers(p) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.used[i] = true
			return exception.Status
		}
	}
	if p.faultKind.harmless || p.faultKind.passing && !p.always {
		return []int{e.Status}
	}
	return []int{http.StatusInternalServerError}
}

// discover notes the calls that are not made without a fault. Of all faults that
// lead to one it keeps the same in every run.
func (e *enumeration) discover(p planned, a Answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range stepsOf(a.Calls) {
		if because, ok := e.found[s]; !e.known[s] && (!ok || cmp.Less(p.String(), because.String())) {
			e.found[s] = p
		}
	}
}
