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
	seeds    = flag.Uint64("seeds", 0, "play so many seeds of each crowd")
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

	// Each of the pairs, orders and crowds names what it Reaches.
}

// shown is how many failures of a scenario are shown.
const shown = 3

// suite is what the scenarios of a suite share.
type suite struct {
	tried  map[string]bool // kinds of calls, with every fault
	failed bool            // a failure was shown whole
}

// Play plays the suite. Without -simulate the pairs have faults in their first order alone,
// the orders are left out, and there are fewer seeds.
func (s Suite) Play(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a run makes much garbage and keeps no memory
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
	if *schedule != "" {
		t.Fatalf("no scenario of the schedule %q", *schedule)
	}
	if *hours > 0 || *seeds > 0 {
		s.playSeeds(t)
		return
	}
	state := &suite{tried: map[string]bool{}}
	each := func(scenarios []Scenario, play func(*testing.T, Scenario)) {
		for _, scenario := range scenarios {
			t.Run(scenario.Name, func(t *testing.T) { play(t, scenario) })
		}
	}
	each(s.Alone, func(t *testing.T, scenario Scenario) { scenario.playAlone(t, state) })
	each(s.Pairs, func(t *testing.T, scenario Scenario) { scenario.playPair(t, state) })
	if *simulate {
		each(s.Orders, func(t *testing.T, scenario Scenario) { scenario.playOrders(t, state, 0) })
	}
	each(s.Crowds, func(t *testing.T, scenario Scenario) {
		p := newPlayed(t, scenario, state)
		for seed := range map[bool]uint64{false: shortSeeds, true: longSeeds}[*simulate] / uint64(len(s.Crowds)) {
			r := scenario.random(t, 1+seed)
			p.note(r.schedule(scenario.Name), r)
		}
		p.log("seeds")
		p.checkReached()
	})
}

const (
	shortSeeds, longSeeds = 60, 250 // of one function
	crowdFaults           = 4
)

// played counts the schedules of a scenario, and shows the failed ones.
type played struct {
	t         *testing.T
	scenario  Scenario
	schedules int
	pruned    int
	failed    int
	began     time.Time
	reached   map[string]bool
	suite     *suite
}

func newPlayed(t *testing.T, s Scenario, of *suite) *played {
	return &played{t: t, scenario: s, began: time.Now(), reached: map[string]bool{}, suite: of}
}

// note counts a run and reports its problems; it is false when enough have failed. It shows
// the first failure of the suite whole, and the others as a line each.
func (p *played) note(schedule string, r result) bool {
	p.t.Helper()
	if r.pruned {
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
	replay := fmt.Sprintf("go test ./%s/%s -run TestSimulation -schedule='%s'", filepath.Base(filepath.Dir(folder)), filepath.Base(folder), schedule)
	switch {
	case p.suite.failed:
		line, _, _ := strings.Cut(r.problems[0], "\n")
		p.t.Errorf("%.200s: %s", line, replay)
	case len(r.steps) > 0:
		p.t.Errorf("%s\nThe calls in their order, with the virtual time in ms; each actor has a column:\n%s\nReplay it:\n%s", r.report(), r.trace(), replay)
	default: // Ask found them before any actor began
		p.t.Errorf("%s\nReplay it:\n%s", strings.Join(r.problems, "\n"), replay)
	}
	p.suite.failed = true
	return p.failed < shown
}

func (r result) report() string {
	if len(r.problems) == 0 {
		return "It keeps the contract."
	}
	return "It breaks the contract:\n  " + strings.Join(r.problems, "\n  ")
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

func (p *played) log(what string) {
	p.t.Helper()
	p.t.Logf("%s: %d schedules (%s), %d cut short, %v", p.scenario.Name, p.schedules, what, p.pruned, time.Since(p.began).Round(time.Millisecond))
}

func (s Scenario) playOrders(t *testing.T, of *suite, faults int) {
	t.Helper()
	p := newPlayed(t, s, of)
	s.explore(t, faults, p.note)
	p.log(fmt.Sprintf("orders, %d faults", faults))
	p.checkReached()
}

// playPair plays every order, with one fault each if -simulate is given. If not, it plays
// one fault each in the first order alone.
func (s Scenario) playPair(t *testing.T, of *suite) {
	t.Helper()
	if *simulate {
		s.playOrders(t, of, 1)
		return
	}
	s.playOrders(t, of, 0)
	p := newPlayed(t, s, of)
	s.playFaults(t, p)
}

// playAlone plays a single request without a fault, then with each fault of each call.
func (s Scenario) playAlone(t *testing.T, of *suite) {
	t.Helper()
	s.playFaults(t, newPlayed(t, s, of))
}

// playFaults plays the first order without a fault, then with each fault of each call. A
// fault is tried with the first scenario that makes such a call; main ones are tried with
// each scenario of several actors, once for each kind of call. With -simulate main ones are
// tried with each call, and each fault also stays.
func (s Scenario) playFaults(t *testing.T, p *played) {
	t.Helper()
	plain := s.play(t, manyFaults, first)
	if !p.note(plain.schedule(s.Name), plain) {
		return
	}
	here := map[string]bool{}
	for i, step := range plain.steps {
		c := step.enabled[0].call
		kind := s.Versioning + kindOf(c.name)
		again := *simulate || len(s.wanted) > 0 && !here[kind]
		for j, a := range step.enabled {
			if !a.added || a.call != c || p.suite.tried[kind] && (!again || !a.fault.is(main)) || a.fault.Stays && !*simulate {
				continue
			}
			r := s.play(t, 1, func(at int, _ []alternative) int { return map[int]int{i: j}[at] })
			if !p.note(r.schedule(s.Name), r) {
				return
			}
		}
		here[kind], p.suite.tried[kind] = true, true
	}
	p.log("one fault each")
}

// playSeeds plays seeds of all scenarios of several actors until the time is up.
func (s Suite) playSeeds(t *testing.T) {
	t.Helper()
	all := slices.Concat(s.Pairs, s.Orders, s.Crowds)
	began, told, count := time.Now(), time.Now(), 0
	from := uint64(1)
	if *hours > 0 { // each night tries other seeds
		from = uint64(began.UnixNano())
	}
	for seed := from; ; seed++ {
		for _, scenario := range all {
			r := scenario.random(t, seed)
			count++
			if len(r.problems) > 0 {
				p := newPlayed(t, scenario, &suite{})
				p.note(r.schedule(scenario.Name), r)
				t.Logf("seed %d", seed)
				return
			}
		}
		if since := time.Since(began); since.Hours() > *hours && seed-from >= *seeds {
			t.Logf("%d schedules in %v, up to seed %d", count, since.Round(time.Second), seed)
			return
		}
		if time.Since(told) > time.Minute {
			told = time.Now()
			_, _ = fmt.Fprintf(os.Stderr, "%s: %d schedules, seed %d, %v\n", t.Name(), count, seed, time.Since(began).Round(time.Second))
		}
	}
}
