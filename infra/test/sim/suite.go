package sim

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	schedule = flag.String("schedule", "", "replay this schedule and print its calls")
	simulate = flag.Bool("simulate", false, "play all that make simulate plays")
	hours    = flag.Float64("hours", 0, "play seeds for so long, from one that the clock chooses")
)

// Suite lists the scenarios of one package.
type Suite struct {
	// Alone are single requests: every fault of every call of each is played.
	Alone []Scenario
	// Pairs are two actors, or a few, that use one item: every order is played, and
	// every order with one fault.
	Pairs []Scenario
	// Orders are actors that use one item: every order is played, without a fault.
	Orders []Scenario
	// Crowds are three actors or more: they are played by seeds.
	Crowds []Scenario

	// Pairs, orders and crowds name the states that they reach: see Scenario.Reaches.
}

// Play plays the suite. Without -simulate the pairs have faults in their first order alone,
// the orders are left out, and there are fewer seeds.
func (s Suite) Play(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a run makes much garbage and keeps no memory
	switch {
	case *schedule != "":
		s.replay(t)
	case *hours > 0:
		s.playSeeds(t)
	default:
		s.playAll(t)
	}
}

// replay plays the schedule of the flag, and prints its calls.
func (s Suite) replay(t *testing.T) {
	t.Helper()
	for _, scenario := range slices.Concat(s.Alone, s.Pairs, s.Orders, s.Crowds) {
		if rest, ok := strings.CutPrefix(*schedule, scenario.Name+"/"); ok {
			r := scenario.replay(t, rest)
			t.Logf("%s\n%s\n%s", scenario.Name, r.trace(), r.report())
			if len(r.problems) > 0 {
				t.Fail()
			}
			return
		}
	}
	t.Fatalf("no scenario of the schedule %q", *schedule)
}

// playSeeds plays seeds of all scenarios of several actors until the time is up. Each night
// tries other seeds.
func (s Suite) playSeeds(t *testing.T) {
	t.Helper()
	began, count := time.Now(), 0
	for seed := uint64(began.UnixNano()); time.Since(began).Hours() < *hours; seed++ {
		for _, scenario := range slices.Concat(s.Pairs, s.Orders, s.Crowds) {
			r := scenario.random(t, seed)
			count++
			if len(r.problems) > 0 {
				newPlayed(t, scenario, &suite{}).note(r)
				t.Logf("seed %d", seed)
				return
			}
		}
	}
	t.Logf("%d schedules in %v", count, time.Since(began).Round(time.Second))
}

const shortSeeds, longSeeds = 60, 250 // of all crowds together

func (s Suite) playAll(t *testing.T) {
	t.Helper()
	state := &suite{tried: map[string]bool{}, crowds: uint64(len(s.Crowds))}
	each(t, state, s.Alone, (*played).oneFaultEach)
	each(t, state, s.Pairs, (*played).pair)
	if *simulate {
		each(t, state, s.Orders, func(p *played) { p.orders(0) })
	}
	each(t, state, s.Crowds, (*played).crowd)
}

func each(t *testing.T, of *suite, scenarios []Scenario, play func(*played)) {
	t.Helper()
	for _, scenario := range scenarios {
		t.Run(scenario.Name, func(t *testing.T) { play(newPlayed(t, scenario, of)) })
	}
}

// suite is what the scenarios of a suite share.
type suite struct {
	crowds uint64
	tried  map[string]bool // kinds of calls, with every fault
	failed bool            // a failure was shown whole
}

// played counts the schedules of a scenario, and shows the failed ones.
type played struct {
	t         *testing.T
	scenario  Scenario
	suite     *suite
	schedules int
	pruned    int
	failed    int
	began     time.Time
	reached   map[string]bool
}

func newPlayed(t *testing.T, s Scenario, of *suite) *played {
	return &played{t: t, scenario: s, suite: of, began: time.Now(), reached: map[string]bool{}}
}

// oneFaultEach plays the first order without a fault, then with each fault of each call.
func (p *played) oneFaultEach() {
	p.t.Helper()
	plain := p.scenario.play(p.t, manyFaults, first)
	if !p.note(plain) {
		return
	}
	here := map[string]bool{} // kinds of calls
	for i, step := range plain.steps[:plain.own] {
		c := step.enabled[0].call
		kind := p.scenario.Versioning + kindOf(c.name)
		for j, a := range step.enabled {
			if a.call == c && a.added && p.tries(a.fault, kind, here[kind]) && !p.note(p.scenario.play(p.t, 1, choices{i: j}.choose)) {
				return
			}
		}
		here[kind], p.suite.tried[kind] = true, true
	}
	p.log("one fault each")
}

// tries reports whether the fault of a kind of call is played. A fault is tried with the
// first scenario that makes such a call; main ones are tried with each scenario of several
// actors, once for each kind of call. With -simulate main ones are tried with each call, and
// each fault also stays. here means that the scenario has made such a call before.
func (p *played) tries(f *Fault, kind string, here bool) bool {
	if f.Stays && !*simulate {
		return false
	}
	again := *simulate || len(p.scenario.wanted) > 0 && !here
	return !p.suite.tried[kind] || again && f.is(main)
}

// pair plays every order, with one fault each if -simulate is given. If not, it plays
// one fault each in the first order alone.
func (p *played) pair() {
	p.t.Helper()
	if *simulate {
		p.orders(1)
		return
	}
	p.orders(0)
	newPlayed(p.t, p.scenario, p.suite).oneFaultEach()
}

func (p *played) orders(faults int) {
	p.t.Helper()
	p.scenario.explore(p.t, faults, p.note)
	p.log(fmt.Sprintf("orders, %d faults", faults))
	p.checkReached()
}

func (p *played) crowd() {
	p.t.Helper()
	count := uint64(shortSeeds)
	if *simulate {
		count = longSeeds
	}
	for seed := range count / p.suite.crowds {
		p.note(p.scenario.random(p.t, 1+seed))
	}
	p.log("seeds")
	p.checkReached()
}

// shown is how many failures of a scenario are shown.
const shown = 3

// note counts a run and reports its problems; it is false when enough have failed. It shows
// the first failure of the suite whole, and the others as a line each.
func (p *played) note(r *run) bool {
	p.t.Helper()
	if r.pruned() {
		p.pruned++
		return true
	}
	p.schedules++
	maps.Copy(p.reached, r.reached)
	if len(r.problems) == 0 {
		return true
	}
	p.failed++
	folder, _ := os.Getwd()
	replay := fmt.Sprintf("go test ./%s/%s -run TestSimulation -schedule='%s'", filepath.Base(filepath.Dir(folder)), filepath.Base(folder), r.schedule())
	switch {
	case p.suite.failed:
		line, _, _ := strings.Cut(r.readable(r.problems[0]), "\n")
		p.t.Errorf("%.200s: %s", line, replay)
	case r.own > 0:
		p.t.Errorf("%s\nThe calls in their order, with the virtual time in ms; each actor has a column:\n%s\nReplay it:\n%s", r.report(), r.trace(), replay)
	default: // Ask found them before any actor began
		p.t.Errorf("%s\nReplay it:\n%s", r.report(), replay)
	}
	p.suite.failed = true
	return p.failed < shown
}

func (r *run) report() string {
	if len(r.problems) == 0 {
		return "It keeps the contract."
	}
	return "It breaks the contract:\n  " + r.readable(strings.Join(r.problems, "\n  "))
}

func (p *played) log(what string) {
	p.t.Helper()
	p.t.Logf("%s: %d schedules (%s), %d cut short, %v", p.scenario.Name, p.schedules, what, p.pruned, time.Since(p.began).Round(time.Millisecond))
}

// checkReached requires that some run reached each wanted state.
func (p *played) checkReached() {
	p.t.Helper()
	if p.failed > 0 {
		return
	}
	missing := slices.DeleteFunc(slices.Clone(p.scenario.wanted), func(state string) bool { return p.reached[state] })
	if len(missing) > 0 || len(p.scenario.wanted) == 0 {
		short := slices.DeleteFunc(slices.Sorted(maps.Keys(p.reached)), func(state string) bool { return len(state) > widest })
		p.t.Errorf("no schedule reached %q, of the %d states that the scenario names; reached were %q", missing, len(p.scenario.wanted), short)
	}
}
