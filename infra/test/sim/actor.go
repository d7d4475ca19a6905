package sim

import (
	"context"
	"regexp"
	"strconv"
	"time"
)

// actor makes calls: a client's request, or an act of the operator's.
type actor struct {
	Name    string
	index   int
	world   *World
	work    work
	limit   time.Duration // the time that it has
	most    int           // how many calls it has time for; 0 means any number
	repeats *actor        // whose work it does again, without faults

	run    *run // nil before the run
	cancel context.CancelFunc

	// The calls so far. The maps are by name.
	made    map[string]int
	ok      map[string]bool   // whether the last one was answered
	last    map[string]failed // the last one, if it failed
	stays   map[string]*Fault
	met     []met
	calls   int
	deepest int // the greatest depth of a call that was answered: the round trips
	ids     int // number of ids without a name

	through          bool
	began, ended     time.Time
	beganAt, endedAt int // numbers in the order of all beginnings and ends
}

// work is what an actor does.
type work interface {
	do(context.Context)
	// show notes the facts that the work shows, right after its end.
	show()
	result() string
	// again makes the actor that repeats the work when all actors have ended, or nil.
	again() *actor
}

// limit is the time that a request or an act of the operator has.
const limit = 10 * time.Second

func (w *World) newActor(name string) *actor {
	a := &actor{
		Name: name, index: w.made, world: w, limit: limit,
		made: map[string]int{}, ok: map[string]bool{}, last: map[string]failed{}, stays: map[string]*Fault{},
	}
	w.made++
	return a
}

func (a *actor) doWork() {
	ctx, cancel := context.WithTimeout(context.Background(), a.limit)
	defer cancel()
	a.cancel = cancel
	a.work.do(ctx)
}

// actBefore lets the actor act before the others begin.
func (w *World) actBefore(a *actor) {
	a.began = time.Now()
	a.doWork()
	a.ended = time.Now()
	a.work.show()
	w.isPast(a)
}

// past is an actor that ended before the run.
func (w *World) past() *actor {
	a := w.newActor("before")
	w.isPast(a)
	return a
}

func (w *World) isPast(a *actor) {
	w.earliest++
	a.through, a.beganAt, a.endedAt = true, w.earliest-last, w.earliest-last
}

// last is later than all actors.
const last = 1 << 30

// atTheEnd is an actor after all others.
var atTheEnd = &actor{Name: "at the end", beganAt: last}

func (a *actor) took() time.Duration { return a.ended.Sub(a.began) }

func (a *actor) overlaps(b *actor) bool { return a != b && !a.before(b) && !b.before(a) }

func (a *actor) before(b *actor) bool { return a.through && a.endedAt < b.beganAt }

type met struct {
	call  string
	fault *Fault
	// logged is the error in the log, nil if that is not known.
	logged map[string]any
}

func (m met) String() string { return m.fault.Name }

// during returns the actor. If the call is applied after its client has given up, it
// returns a stand-in actor that never ends.
func (m met) during(a *actor) *actor {
	if !m.fault.is(appliedLate) {
		return a
	}
	return &actor{Name: a.Name + ", late", through: true, beganAt: a.beganAt, endedAt: last}
}

// metFaultThatStays reports whether repeating a call did not help.
func (a *actor) metFaultThatStays() bool {
	met := map[string]int{}
	for _, m := range a.met {
		if m.fault.is(lastsTwoSeconds) {
			continue
		}
		if met[m.call]++; m.fault.Stays || !m.fault.is(recovers) || met[m.call] > 2 {
			return true
		}
	}
	return false
}

// failed is the time when a call failed, and whether it lost its connection.
type failed struct {
	at   time.Time
	lost bool
}

var (
	id   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	hash = regexp.MustCompile(`[0-9a-f]{64}`)
)

// alias shortens the item of a call. An id that the scenario named gets its name; any
// other id gets a number.
func (a *actor) alias(item string) string {
	return hash.ReplaceAllStringFunc(id.ReplaceAllStringFunc(item, a.short), a.short)
}

func (a *actor) short(long string) string {
	names := a.world.names
	if names[long] == "" {
		a.ids++
		names[long] = a.Name + strconv.Itoa(a.ids)
	}
	return names[long]
}
