package functest

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"signalbox.dev/infra/testkit/faults"
)

// atOnce is how many requests are tried side by side: most wait for engines.
const atOnce = 12

// exhaustive has minor faultKind tried everywhere.
var exhaustive = flag.Bool("exhaustive", false, "try every fault of a call in every kind of request that makes it")

// Survive plays each scenario once for every fault that every call of it may
// meet, once and for good, and then sends the same request again. Which calls
// there are is found out by watching a request that meets no fault, and calls
// that only a fault brings about are found on the way and tried in their turn:
// none can be forgotten. statuses are those the operation may answer.
//
// Minor faultKind of a call are tried in the first scenario that makes it;
// -exhaustive tries them in every one, which takes three times as long.
func Survive(t *testing.T, statuses []int, scenarios ...Scenario) {
	t.Helper()
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(rows, "scenario\tcalls\tfaults\tcases\tsurvived")
	sum := tally{faults: map[string]bool{}}
	tried := map[step]bool{}
	for _, s := range scenarios {
		t.Run(s.Name, func(t *testing.T) {
			c := enumeration{Scenario: s, statuses: statuses, tried: tried, used: map[int]bool{}, done: tally{faults: map[string]bool{}}}
			c.run(t)
			_, _ = fmt.Fprintf(rows, "%s\t%s\n", s.Name, c.done)
			sum.add(c.done)
		})
	}
	_, _ = fmt.Fprintf(rows, "all\t%s\n", sum)
	_ = rows.Flush()
	t.Logf("faults survived:\n%s", table.String())
}

// tally counts what was tried.
type tally struct {
	calls, cases, survived int
	faults                 map[string]bool
}

func (n tally) String() string {
	return fmt.Sprintf("%d\t%d\t%d\t%d", n.calls, len(n.faults), n.cases, n.survived)
}

func (n *tally) add(other tally) {
	n.calls += other.calls
	n.cases += other.cases
	n.survived += other.survived
	maps.Copy(n.faults, other.faults)
}

// enumeration tries one scenario.
type enumeration struct {
	Scenario
	statuses []int
	tried    map[step]bool // whose minor faultKind were tried before

	mu    sync.Mutex
	done  tally
	used  map[int]bool       // exceptions that were needed
	found map[step][]planned // calls that only a fault brought about, and which
	known map[step]bool
}

func (c *enumeration) run(t *testing.T) {
	steps := c.clean(t)
	c.known, c.found = map[step]bool{}, map[step][]planned{}
	for _, s := range steps {
		c.known[s] = true
	}
	var trials [][]planned
	for _, s := range steps {
		trials = append(trials, plans(s, *exhaustive || !c.tried[s])...)
		c.tried[s] = true
	}
	c.try(t, trials)
	// What the faults brought about meets faults itself.
	trials = nil
	for s, behind := range c.found {
		for _, second := range plans(s, false) {
			trials = append(trials, append(slices.Clone(behind), second...))
		}
	}
	c.done.calls = len(steps) + len(c.found)
	c.try(t, trials)
	for i, e := range c.Except {
		if *exhaustive && !c.used[i] {
			t.Errorf("exception %+v covers nothing", e)
		}
	}
}

// plans are the faults that the call may meet, minor ones only if told so.
func plans(s step, minor bool) [][]planned {
	var all [][]planned
	for _, a := range faultsOf(s) {
		if a.minor && !minor {
			continue
		}
		all = append(all, []planned{{s, a, false}})
		if !a.fatal {
			all = append(all, []planned{{s, a, true}})
		}
	}
	return all
}

// clean plays the scenario without a fault and tells what it calls.
func (c *enumeration) clean(t *testing.T) []step {
	t.Helper()
	testCase := c.Set(t)
	f := testCase.Env.Instance()
	first := f.InvokeAmid(t, testCase.Event, testCase.Meanwhile)
	f.Faults.Heal()
	if first.Status != c.Status {
		t.Fatalf("without a fault: status %d, want %d: %s", first.Status, c.Status, first.log)
	}
	testCase.Check(t, first)
	testCase.Settled(t, first, f.Invoke(t, testCase.Event.Again()))
	return stepsOf(first.Calls)
}

// try plays the scenario once for each of the trials.
func (c *enumeration) try(t *testing.T, trials [][]planned) {
	var all sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for _, trial := range trials {
		all.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			c.count(trial, t.Run(fmt.Sprint(trial), func(t *testing.T) { c.meet(t, trial) }))
		})
	}
	all.Wait()
}

// meet plays the scenario with the faults in the way, and again without.
func (c *enumeration) meet(t *testing.T, trial []planned) {
	testCase := c.Set(t)
	f := testCase.Env.Instance()
	var rules []faults.Rule
	for _, p := range trial {
		rules = append(rules, p.rule(f))
	}
	first := f.InvokeAmid(t, testCase.Event, append(rules, testCase.Meanwhile...))
	met := slices.ContainsFunc(first.Calls, func(call faults.Call) bool {
		return call.Failed && stepOf(call) == trial[len(trial)-1].step
	})
	if !met {
		t.Error("the fault was not met")
	}
	if !slices.Contains(c.statuses, first.Status) {
		t.Errorf("status %d is none of the operation's", first.Status)
	}
	if len(trial) == 1 {
		if !trial[0].always {
			c.discover(trial[0], first)
		}
		if want := c.want(trial[0]); !slices.Contains(want, first.Status) {
			t.Errorf("status %d, want %d: %s", first.Status, want, first.log)
		}
	}
	testCase.Check(t, first)
	f.Faults.Heal()
	again := f.Invoke(t, testCase.Event.Again())
	testCase.Settled(t, first, again)
}

// want are the statuses that a request may end with which meets the fault.
func (c *enumeration) want(p planned) []int {
	for i, e := range c.Except {
		if e.covers(p) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.used[i] = true
			return e.Status
		}
	}
	if p.faultKind.harmless || p.faultKind.passing && !p.always {
		return []int{c.Status}
	}
	return []int{http.StatusInternalServerError}
}

// discover notes the calls that nobody makes who meets no fault.
func (c *enumeration) discover(p planned, a Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range stepsOf(a.Calls) {
		if c.known[s] {
			continue
		}
		// Of all that lead there one is followed, the same at every run.
		if behind, ok := c.found[s]; !ok || cmp.Less(p.String(), behind[0].String()) {
			c.found[s] = []planned{p}
		}
	}
}

func (c *enumeration) count(trial []planned, survived bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done.cases++
	if survived {
		c.done.survived++
	}
	for _, p := range trial {
		c.done.faults[p.faultKind.name] = true
	}
}
