// Package sim runs the functions and the operator's acts in every order of their
// calls to AWS, and with every fault of every call, in virtual time.
//
// One schedule is one testing/synctest bubble. The handlers are those that each
// function's main.go assembles, with the real SDK and the real retry policy. Below
// the SDK an HTTP client holds each call until a scheduler has chosen it; then
// package model applies it and answers, or a fault happens instead. So the real
// time-outs, back-offs and deadlines pass, and no test waits for them.
//
// A schedule is a short text. It contains only the steps that differ from the first
// choice. A failure prints one line to replay it, and its calls as a table with a
// column for each actor. Only tests import this package.
package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"
)

// run is one schedule under way.
type run struct {
	*World

	actors []*actor
	choose chooser
	budget int // faults that may still happen
	steps  []step
	main   []step // without the repetitions
	rows   []row
	faults int // that happened
	ticks  int // beginnings and ends of actors
	menu   func(*call) []*Fault

	mu      sync.Mutex
	waiting []*call
	news    chan struct{} // a call waits, or an actor is through
}

// step is one choice of the scheduler.
type step struct {
	enabled []alternative
	chosen  int
}

// alternative is a possible next step: a call is answered, with or without a fault.
type alternative struct {
	call  *call
	fault *Fault
	name  string // the same in every run of the scenario
}

// chooser decides which of the alternatives happens; -1 ends the run without a
// judgement.
type chooser func(step int, enabled []alternative) int

// result is the outcome of one schedule.
type result struct {
	problems []string
	trace    func() string
	steps    []step
	pruned   bool
}

const (
	// pause is how long the scheduler waits for a call to be repeated before it
	// chooses again: longer than any back-off.
	pause = time.Second + 100*time.Millisecond
	// hung is how long no run takes.
	hung = time.Minute
	// start is the budget of a replay, which chooses its faults itself.
	manyFaults = 1000
)

// play runs one schedule of the scenario in a new bubble.
func (s Scenario) play(t *testing.T, faults int, menu func(*call) []*Fault, choose chooser) (done result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, seedOf(s.Name))
		r := &run{World: newWorld(t, s), choose: choose, budget: faults, menu: menu, news: make(chan struct{}, 1)}
		s.Set(r.World)
		r.begin()
		for r.next() {
		}
		r.main = r.steps
		if done.pruned = r.pruned(); !done.pruned {
			r.finish()
		}
		done.problems, done.steps = r.readable(r.problems), r.main
		done.trace = r.trace
	})
	return done
}

func (r *run) pruned() bool {
	return len(r.steps) > 0 && r.steps[len(r.steps)-1].chosen < 0
}

// begin starts the actors, one after the other.
func (r *run) begin() {
	for _, a := range r.World.actors {
		r.start(a)
	}
}

func (r *run) start(a *actor) {
	r.ticks++
	a.run, a.began, a.beganAt = r, time.Now(), r.ticks
	r.actors = append(r.actors, a)
	go func() {
		a.act()
		r.mu.Lock()
		a.ended, a.through = time.Now(), true
		r.mu.Unlock()
		r.signal()
	}()
	synctest.Wait()
}

// signal tells the scheduler that something has changed.
func (r *run) signal() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// next makes one step; it is false when all actors are through.
func (r *run) next() bool {
	begun := time.Now()
	for {
		synctest.Wait()
		r.notice()
		enabled := r.enabled()
		if len(enabled) > 0 {
			return r.take(enabled)
		}
		if r.allThrough() {
			return false
		}
		if time.Since(begun) > hung {
			r.problem("after %v of waiting an actor is not through", hung)
			return false
		}
		r.await(hung)
	}
}

// await lets virtual time pass until something changes.
func (r *run) await(atMost time.Duration) (changed bool) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-r.news:
		synctest.Wait()
		return true
	case <-timer.C:
		return false
	}
}

// notice lets the world look at the state after each step, and at each actor that
// is through since the last.
func (r *run) notice() {
	for _, a := range r.actors {
		if a.through && !a.noticed {
			r.ticks++
			a.noticed, a.endedAt = true, r.ticks
			a.then()
			r.rows = append(r.rows, row{time.Since(r.began), a, "ENDS: " + a.result()})
		}
	}
}

// enabled returns the alternatives of the next step. Their order is the same in each
// run: the calls by actor and name, then their faults.
func (r *run) enabled() []alternative {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.waiting, func(a, b *call) int { return strings.Compare(a.order(), b.order()) })
	var all []alternative
	for _, c := range r.waiting {
		a := alternative{call: c, name: c.String()}
		if f := c.staying(); f != nil { // it meets again what it met
			a.fault, a.name = f, a.name+" "+f.Name
		}
		all = append(all, a)
	}
	if r.faults >= r.budget {
		return all
	}
	for _, c := range r.waiting {
		if c.late || c.staying() != nil || c.actor.spared {
			continue
		}
		for _, f := range r.menu(c) {
			all = append(all, alternative{call: c, fault: f, name: c.String() + " " + f.Name})
		}
	}
	return all
}

// take makes one of the alternatives happen, and waits for a repetition after it.
func (r *run) take(enabled []alternative) bool {
	at := step{enabled: enabled}
	if at.chosen = r.choose(len(r.steps), enabled); at.chosen < 0 {
		r.record(at)
		r.abandon()
		return false
	}
	chosen := enabled[at.chosen]
	r.remove(chosen.call)
	r.record(at)
	before := chosen.call.answered
	r.rows = append(r.rows, row{time.Since(r.began), chosen.call.actor, r.apply(chosen)})
	if len(r.steps) > maxSteps {
		r.problem("the run has more than %d steps", maxSteps)
		r.abandon()
		return false
	}
	synctest.Wait()
	r.check()
	if !before && chosen.call.repeats && len(r.actors) > 1 {
		r.awaitRepetition(chosen.call)
	}
	return true
}

// record adds a step. A call that the step lets happen is born after it.
func (r *run) record(at step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, at)
}

// allThrough reports whether all actors have ended.
func (r *run) allThrough() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(r.actors, func(a *actor) bool { return !a.through })
}

// maxSteps bounds a run.
const maxSteps = 600

// awaitRepetition lets time pass until the call is made again, if it is.
func (r *run) awaitRepetition(c *call) {
	wait := pause
	if c.patience > 0 {
		wait += c.patience
	}
	for end := time.Now().Add(wait); time.Now().Before(end); {
		if r.repeated(c) || !r.await(time.Until(end)) {
			return
		}
	}
}

// repeated reports whether nothing is to be waited for.
func (r *run) repeated(c *call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.actor.through || slices.ContainsFunc(r.waiting, func(w *call) bool {
		return w != c && w.actor == c.actor && !w.late && w.name == c.name && w.number > c.number
	})
}

func (r *run) remove(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = slices.DeleteFunc(r.waiting, func(w *call) bool { return w == c })
}

// abandon ends all actors without a judgement.
func (r *run) abandon() {
	for _, a := range r.actors {
		a.cancel()
	}
	synctest.Wait()
	for range 100 {
		if r.allThrough() {
			return
		}
		r.await(pause)
	}
}

// finish lets each client repeat its request, without faults and one after the
// other, and judges everything.
func (r *run) finish() {
	r.budget, r.main, r.choose = 0, r.steps, func(int, []alternative) int { return 0 }
	if r.settled != nil && !r.unfinished {
		r.settled()
	}
	for _, a := range slices.Clone(r.actors) {
		for again := a.again(); again != nil; again = again.again() {
			again.spared, again.repeats = true, a
			r.start(again)
			for r.next() {
			}
		}
	}
	r.judge()
}

// problem notes a breach of the contract.
func (w *World) problem(format string, a ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, a...))
}

// readable replaces hashes and ids by their names.
func (w *World) readable(problems []string) []string {
	for i, problem := range problems {
		for long, name := range w.names {
			problem = strings.ReplaceAll(problem, long, name)
			if len(long) == 64 {
				problem = strings.ReplaceAll(problem, long[:12], name)
			}
		}
		problems[i] = problem
	}
	return problems
}
