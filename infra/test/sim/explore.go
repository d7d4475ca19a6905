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

// node is a point of a depth-first exploration.
type node struct {
	enabled []alternative
	asleep  map[string]alternative // their orders with later calls were played already
	todo    map[int]bool           // alternatives to try
	chosen  int
}

// explore plays the scenario in every order that differs in an outcome, with at most
// that many faults. If two calls touch different items, or only read, both orders have
// the same outcome. So explore plays another order only if two calls were in a race
// (dynamic partial-order reduction: Flanagan and Godefroid, 2005). It skips orders that
// it has played before (sleep sets: Godefroid, 1996).
func (s Scenario) explore(t *testing.T, faults int, each func(schedule string, r result) bool) {
	t.Helper()
	var path []*node
	for {
		r := s.play(t, faults, func(i int, enabled []alternative) int {
			if i < len(path) {
				return path[i].again(enabled)
			}
			n := &node{enabled: enabled, asleep: map[string]alternative{}, todo: map[int]bool{}}
			if i > 0 {
				n.asleep = path[i-1].stillAsleep()
			}
			path = append(path, n)
			for i := 0; i < len(enabled) && !enabled[i].added && len(n.todo) == 0; i++ {
				n.try(enabled[i].call)
			}
			n.chosen = n.next()
			return n.chosen
		})
		addRaces(path)
		if !each(r.schedule(s.Name), r) {
			return
		}
		for len(path) > 0 {
			last := path[len(path)-1]
			if last.chosen >= 0 {
				last.asleep[last.enabled[last.chosen].String()] = last.enabled[last.chosen]
				last.chosen = last.next()
			}
			if last.chosen >= 0 {
				break
			}
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return
		}
	}
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

// next returns the first alternative of todo, or -1.
func (n *node) next() int {
	for _, i := range slices.Sorted(maps.Keys(n.todo)) {
		if _, asleep := n.asleep[n.enabled[i].String()]; !asleep {
			return i
		}
	}
	return -1
}

// addRaces finds the calls of a run that could have come before an earlier call to the
// same item. It adds the calls that lead to them to the earlier call's node.
func addRaces(path []*node) {
	var done []alternative
	for _, n := range path {
		if n.chosen < 0 { // cut short: only sleeping alternatives were left
			for _, a := range n.enabled {
				race(path, done, a)
			}
			return
		}
		race(path, done, n.enabled[n.chosen])
		done = append(done, n.enabled[n.chosen])
	}
}

func race(path []*node, done []alternative, later alternative) {
	for i := len(done) - 1; i >= 0; i-- {
		if done[i].call == later.call || !dependent(done[i], later) {
			continue
		}
		// The call may have been made only after other calls were answered: the first
		// of them leads to it.
		leads := later.call
		for leads.born > i {
			if leads.born-1 == i {
				leads = nil // it was made because of the earlier one
				break
			}
			leads = done[leads.born-1].call
		}
		if leads == nil {
			continue
		}
		for _, a := range path[i].enabled {
			if a.call.String() == leads.String() {
				path[i].try(a.call)
				break
			}
		}
	}
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

// dependent reports whether the order of the two may matter.
func dependent(a, b alternative) bool {
	if a.call.String() == b.call.String() {
		return true
	}
	return !awsmodel.Commute(a.call.touches, b.call.touches)
}

// random plays the scenario once with choices of the seed, and up to crowdFaults
// faults.
func (s Scenario) random(t *testing.T, seed uint64) result {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // no secret
	return s.play(t, crowdFaults, func(_ int, enabled []alternative) int {
		plain := slices.IndexFunc(enabled, func(a alternative) bool { return a.added })
		if plain > 0 && random.IntN(8) == 0 {
			return plain + random.IntN(len(enabled)-plain)
		}
		if plain < 0 {
			plain = len(enabled)
		}
		return random.IntN(plain)
	})
}

// seedOf is the seed of ids, nonces and back-offs. All schedules of a scenario have the
// same seed, because their calls must have the same names.
func seedOf(name string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // never fails
	return hash.Sum64()
}

// schedule is the text that replays the run: the scenario, then each step at which
// another alternative than the first was chosen, with its choice.
func (r result) schedule(scenario string) string {
	var parts []string
	for i, s := range r.steps {
		if s.chosen > 0 {
			parts = append(parts, fmt.Sprintf("%d:%d", i, s.chosen))
		}
	}
	return scenario + "/" + strings.Join(parts, ";")
}

// replay plays a schedule. rest is its text after the scenario's name.
func (s Scenario) replay(t *testing.T, rest string) result {
	t.Helper()
	choices := map[int]int{}
	for part := range strings.SplitSeq(rest, ";") {
		var step, choice int
		_, _ = fmt.Sscanf(part, "%d:%d", &step, &choice)
		choices[step] = choice
	}
	return s.play(t, manyFaults, func(i int, enabled []alternative) int { return min(choices[i], len(enabled)-1) })
}
