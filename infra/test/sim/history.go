package sim

import (
	"fmt"
	"strings"
)

// fact is one actor's observation of one object. step returns the states that the object
// may have after it, or none if the fact is impossible. The contract promises that each
// object is linearizable: each fact happens at one instant between the beginning and the
// end of its actor. An actor that shows several objects has an instant for each. A create
// that overlaps the deletion of its workspace counts as earlier.
type fact struct {
	object, text string
	actor        *actor
	step         func(state any) (next []any)
}

// on makes a fact about an object with states of type S. The first state is the zero
// value.
func on[S comparable](object, text string, step func(S) (allowed bool, next S)) fact {
	return fact{object: object, text: text, step: func(state any) []any {
		s, _ := state.(S) // nil at first
		if allowed, next := step(s); allowed {
			return []any{next}
		}
		return nil
	}}
}

// perhaps is a fact that may not have happened.
func perhaps(f fact) fact {
	sure := f.step
	f.text += ", perhaps"
	f.step = func(state any) []any { return append(sure(state), state) }
	return f
}

// shows makes a fact that changes nothing.
func shows[S comparable](object, text string, allowed func(S) bool) fact {
	return on(object, text, func(s S) (bool, S) { return allowed(s), s })
}

// sets makes a fact that is always possible, and after which the object has the state.
func sets[S comparable](object, text string, next S) fact {
	return on(object, text, func(S) (bool, S) { return true, next })
}

// seenOn and its neighbours are facts about an object that is on or off: an API key that is
// disabled, a workspace that is deleted.
func seenOn(object string) fact {
	return shows(object, "on", func(off bool) bool { return !off })
}

func seenOff(object string) fact {
	return shows(object, "off", func(off bool) bool { return off })
}

func turnedOff(object string) fact { return sets(object, "turned off", true) }

func keyObject(token string) string { return "key " + hashOf(token)[:12] }

// existence is the object of a deleted or unknown API key.
func existence(hash string) string { return "existence of key " + hash[:12] }

func workspaceObject[ID ~string](id ID) string { return "workspace " + string(id) }

// showed notes the facts that an actor showed.
func (w *World) showed(a *actor, facts ...fact) {
	for _, f := range facts {
		f.actor = a
		w.facts = append(w.facts, f)
	}
}

// checkFacts searches, for each object, an order in which all its facts are possible.
func (w *World) checkFacts() {
	objects := map[string][]fact{}
	for _, f := range w.facts {
		objects[f.object] = append(objects[f.object], f)
	}
	for object, facts := range objects {
		if len(facts) > 64 {
			panic("more facts about one object than a search has bits")
		}
		s := search{facts: facts, dead: map[point]bool{}}
		if s.from(point{}) {
			continue
		}
		var texts []string
		for _, f := range facts {
			texts = append(texts, fmt.Sprintf("\n    %s: %s", f.actor.Name, f.text))
		}
		w.problem("%s: no order of these facts is allowed:%s", object, strings.Join(texts, ""))
	}
}

// search searches the orders of the facts about one object.
type search struct {
	facts []fact
	dead  map[point]bool // no order leads on from here
}

// point is a state of the object after some of the facts.
type point struct {
	done  uint64 // a bit for each fact
	state any
}

// from reports whether the facts that are left have an order.
func (s search) from(p point) bool {
	if p.done == uint64(1)<<len(s.facts)-1 {
		return true
	}
	if s.dead[p] {
		return false
	}
	for i, f := range s.facts {
		if !s.mayBeNext(p, i) {
			continue
		}
		for _, next := range f.step(p.state) {
			if s.from(point{p.done | 1<<i, next}) {
				return true
			}
		}
	}
	s.dead[p] = true
	return false
}

// mayBeNext reports whether the fact is left, and no other one that is left ended before its
// actor began.
func (s search) mayBeNext(p point, i int) bool {
	if p.done>>i&1 == 1 {
		return false
	}
	for j, other := range s.facts {
		if p.done>>j&1 == 0 && other.actor.before(s.facts[i].actor) {
			return false
		}
	}
	return true
}
