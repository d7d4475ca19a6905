package sim

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"signalbox.dev/infra/test/awsmodel"
)

// explorer explores the orders of a scenario's calls, depth first. If two calls touch
// different items, or only read, both orders have the same outcome. So another order is
// played only if two calls were in a race (dynamic partial-order reduction: Flanagan and
// Godefroid, 2005). Orders that were played before are skipped (sleep sets: Godefroid, 1996).
type explorer struct {
	path []*node // of the run that is played
}

type node struct {
	enabled []alternative
	asleep  map[string]alternative // their orders with later calls were played already
	todo    map[int]bool           // alternatives to try
	chosen  int
}

// explore plays the scenario in every order that differs in an outcome, with at most
// that many faults, until each returns false.
func (s Scenario) explore(t *testing.T, faults int, each func(*run) bool) {
	t.Helper()
	e := &explorer{}
	for {
		r := s.play(t, faults, e.choose)
		e.addRaces()
		if !each(r) || !e.advance() {
			return
		}
	}
}

// choose repeats the choices of the path, and then goes on with the first calls.
func (e *explorer) choose(step int, enabled []alternative) int {
	if step < len(e.path) {
		return e.path[step].again(enabled)
	}
	n := &node{enabled: enabled, asleep: map[string]alternative{}, todo: map[int]bool{}}
	if step > 0 {
		n.asleep = e.path[step-1].stillAsleep()
	}
	e.path = append(e.path, n)
	for i := 0; i < len(enabled) && !enabled[i].added && len(n.todo) == 0; i++ {
		n.try(enabled[i].call)
	}
	n.chosen = n.next()
	return n.chosen
}

// again makes the same choice as the previous run.
func (n *node) again(enabled []alternative) int {
	if was, is := n.enabled[n.chosen].String(), enabled[n.chosen].String(); was != is {
		panic(fmt.Sprintf("a repeated run differs: %s instead of %s", is, was))
	}
	return n.chosen
}

// stillAsleep returns the alternatives that need not be tried after the chosen one.
func (n *node) stillAsleep() map[string]alternative {
	asleep, chosen := maps.Clone(n.asleep), n.enabled[n.chosen]
	maps.DeleteFunc(asleep, func(_ string, a alternative) bool { return dependent(a, chosen) })
	return asleep
}

// try adds a call to todo, without a fault and with each main fault, unless it is
// asleep.
func (n *node) try(c *call) {
	for j, a := range n.enabled {
		if a.call != c || a.added && (!a.fault.is(main) || a.fault.Stays) {
			continue
		}
		if _, asleep := n.asleep[a.String()]; !asleep {
			n.todo[j] = true
		}
	}
}

func (n *node) next() int {
	for _, i := range slices.Sorted(maps.Keys(n.todo)) {
		if _, asleep := n.asleep[n.enabled[i].String()]; !asleep {
			return i
		}
	}
	return -1
}

// advance shortens the path to the last step that has another alternative to try, and
// chooses that. It returns false if there is none.
func (e *explorer) advance() bool {
	for len(e.path) > 0 {
		last := e.path[len(e.path)-1]
		if last.chosen >= 0 {
			last.asleep[last.enabled[last.chosen].String()] = last.enabled[last.chosen]
			last.chosen = last.next()
		}
		if last.chosen >= 0 {
			return true
		}
		e.path = e.path[:len(e.path)-1]
	}
	return false
}

// addRaces finds the calls of a run that could have come before an earlier call to the
// same item. It adds the calls that lead to them to the earlier call's node.
func (e *explorer) addRaces() {
	for i, n := range e.path {
		if n.chosen >= 0 {
			e.race(i, n.enabled[n.chosen])
			continue
		}
		for _, a := range n.enabled { // cut short: only sleeping alternatives were left
			e.race(i, a)
		}
	}
}

// race adds the races of a call with the steps before it.
func (e *explorer) race(step int, later alternative) {
	for i := step - 1; i >= 0; i-- {
		earlier := e.path[i].enabled[e.path[i].chosen]
		if earlier.call == later.call || !dependent(earlier, later) {
			continue
		}
		leads := e.leadsTo(later.call, i)
		for _, a := range e.path[i].enabled {
			if leads != nil && a.call.String() == leads.String() {
				e.path[i].try(a.call)
				break
			}
		}
	}
}

// leadsTo returns the call that must be answered first, at the step, for the call to be made:
// itself if it was waiting, nil if the answer of the step caused it.
func (e *explorer) leadsTo(c *call, step int) *call {
	for c.born > step {
		if c.born-1 == step {
			return nil
		}
		cause := e.path[c.born-1]
		c = cause.enabled[cause.chosen].call
	}
	return c
}

// dependent reports whether the order of the two may matter.
func dependent(a, b alternative) bool {
	return a.call.String() == b.call.String() || !awsmodel.Commute(a.call.touches, b.call.touches)
}

// random plays the scenario once with choices of the seed, and up to crowdFaults
// faults.
func (s Scenario) random(t *testing.T, seed uint64) *run {
	t.Helper()
	return s.play(t, crowdFaults, dice{rand.New(rand.NewPCG(seed, 1))}.choose) //nolint:gosec // no secret
}

const crowdFaults = 4

// dice chooses at random, a new fault at one step in eight.
type dice struct{ *rand.Rand }

func (d dice) choose(_ int, enabled []alternative) int {
	plain := slices.IndexFunc(enabled, func(a alternative) bool { return a.added })
	if plain > 0 && d.IntN(8) == 0 {
		return plain + d.IntN(len(enabled)-plain)
	}
	if plain < 0 {
		plain = len(enabled)
	}
	return d.IntN(plain)
}

// seedOf is the seed of ids, nonces and back-offs. All schedules of a scenario have the
// same seed, because their calls must have the same names.
func seedOf(name string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // never fails
	return hash.Sum64()
}

// choices are the choices by step; at other steps the first alternative is chosen.
type choices map[int]int

func (c choices) choose(step int, enabled []alternative) int { return min(c[step], len(enabled)-1) }

// schedule is the text that replays the run: the scenario, then each step at which
// another alternative than the first was chosen, with its choice.
func (r *run) schedule() string {
	var parts []string
	for i, s := range r.steps[:r.own] {
		if s.chosen > 0 {
			parts = append(parts, fmt.Sprintf("%d:%d", i, s.chosen))
		}
	}
	return r.Scenario.Name + "/" + strings.Join(parts, ";")
}

// replay plays a schedule. rest is its text after the scenario's name.
func (s Scenario) replay(t *testing.T, rest string) *run {
	t.Helper()
	c := choices{}
	for part := range strings.SplitSeq(rest, ";") {
		var step, choice int
		_, _ = fmt.Sscanf(part, "%d:%d", &step, &choice)
		c[step] = choice
	}
	return s.play(t, manyFaults, c.choose)
}
