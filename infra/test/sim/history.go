package sim

import (
	"fmt"
	"strings"
)

// event is a fact that one actor showed about one object. step returns the states that
// the object may have after it, or none if the event is not allowed. The contract
// promises that each object is linearizable: each event happens at one instant between
// the beginning and the end of its actor. An actor that shows several objects has an
// instant for each. A create that overlaps the deletion of its workspace counts as
// earlier.
type event struct {
	object, text string
	actor        *actor
	step         func(state any) (next []any)
}

// on makes an event of an object with states of type S. The first state is the zero
// value.
func on[S comparable](object, text string, step func(S) (allowed bool, next S)) event {
	return event{object: object, text: text, step: func(state any) []any {
		s, _ := state.(S) // nil at first
		if allowed, next := step(s); allowed {
			return []any{next}
		}
		return nil
	}}
}

// perhaps is an event that may not have happened.
func perhaps(e event) event {
	sure := e.step
	e.text += ", perhaps"
	e.step = func(state any) []any { return append(sure(state), state) }
	return e
}

// shows makes an event that changes nothing.
func shows[S comparable](object, text string, allowed func(S) bool) event {
	return on(object, text, func(s S) (bool, S) { return allowed(s), s })
}

// sets makes an event that is always allowed.
func sets[S comparable](object, text string, next func(S) S) event {
	return on(object, text, func(s S) (bool, S) { return true, next(s) })
}

// showed notes the facts that an actor showed.
func (w *World) showed(a *actor, events ...event) {
	for _, e := range events {
		e.actor = a
		w.history = append(w.history, e)
	}
}

// checkHistory searches, for each object, an order in which its state allows all.
func (w *World) checkHistory() {
	objects := map[string][]event{}
	for _, e := range w.history {
		objects[e.object] = append(objects[e.object], e)
	}
	for object, events := range objects {
		if !linearizable(events) {
			var texts []string
			for _, e := range events {
				texts = append(texts, fmt.Sprintf("\n    %s: %s", e.actor.Name, e.text))
			}
			w.problem("%s: no order of these facts is allowed:%s", object, strings.Join(texts, ""))
		}
	}
}

// linearizable reports whether the events have an order that the object's state allows.
// There are 64 at most.
func linearizable(events []event) bool {
	type point struct {
		done  uint64 // a bit for each event
		state any
	}
	if len(events) > 64 {
		panic("more events of one object than a search has bits")
	}
	dead := map[point]bool{}
	var search func(point) bool
	search = func(p point) bool {
		if p.done == uint64(1)<<len(events)-1 {
			return true
		}
		if dead[p] {
			return false
		}
		left := func(i int) bool { return p.done>>i&1 == 0 }
		for i, e := range events {
			first := left(i)
			for j, other := range events {
				first = first && (!left(j) || !other.actor.before(e.actor))
			}
			if !first {
				continue
			}
			for _, next := range e.step(p.state) {
				if search(point{p.done | 1<<i, next}) {
					return true
				}
			}
		}
		dead[p] = true
		return false
	}
	return search(point{})
}

// atTheEnd is an actor after all others.
var atTheEnd = &actor{Name: "at the end", beganAt: last}

// last is later than all actors.
const last = 1 << 30

// seenOn and its neighbours are events of an object that is on or off: an API key that is
// disabled, a workspace that is deleted.
func seenOn(object string) event {
	return shows(object, "on", func(off bool) bool { return !off })
}

func seenOff(object string) event {
	return shows(object, "off", func(off bool) bool { return off })
}

func turnedOff(object string) event {
	return sets(object, "turned off", func(bool) bool { return true })
}

func keyObject(token string) string { return "key " + hashOf(token)[:12] }

func workspaceObject[ID ~string](id ID) string { return "workspace " + string(id) }
