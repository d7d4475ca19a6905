// Package sim runs the functions and the operator's acts in every order of their
// calls to AWS, and with every fault of every call, in virtual time.
//
// One schedule is one testing/synctest bubble. Each function's main.go assembles the
// handler, with the real SDK and the real retry policy. Below the SDK an HTTP client
// holds each call until a scheduler chooses it. Then package awsmodel applies the call and
// answers, or a fault happens instead. So the real time-outs, back-offs and deadlines
// pass, and no test waits for them.
//
// A schedule is a short text. It contains only the steps that differ from the first
// choice. The first failure of a suite prints one line to replay it, and its calls as a
// table with a column for each actor. The others print the line alone. A scenario of several
// actors names the results that some schedule must reach: an exhaustive search over orders
// that all end early shows nothing. Only tests import this package.
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
	budget int // number of faults that may still happen
	steps  []step
	rows   []row
	faults int // that happened
	ticks  int // beginnings and ends of actors

	mu      sync.Mutex
	waiting []*call
	news    chan struct{} // a call waits, or an actor has ended
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
	// added means that the fault is new and uses the budget. Any other fault repeats an
	// earlier one.
	added bool
}

// String names the alternative. It is the same in every run of the scenario.
func (a alternative) String() string {
	if a.fault == nil {
		return a.call.String()
	}
	return a.call.String() + " " + a.fault.Name
}

// chooser decides which of the alternatives happens; -1 ends the run without a
// judgement.
type chooser func(step int, enabled []alternative) int

// first answers the calls in their order, without a fault.
func first(int, []alternative) int { return 0 }

// result is the outcome of one schedule.
type result struct {
	problems []string
	trace    func() string
	steps    []step // without the repetitions
	pruned   bool
	reached  map[string]bool // the states, see Scenario.Reaches
}

const (
	// pause is how long the scheduler waits for the repetition of a call before it
	// chooses again. It is longer than any back-off.
	pause = time.Second + 100*time.Millisecond
	// hung is the time after which a run is stuck.
	hung = time.Minute
	// manyFaults is more faults than a run can have.
	manyFaults = 1000
	// maxSteps bounds a run.
	maxSteps = 600
)

// play runs one schedule of the scenario in a new bubble.
func (s Scenario) play(t *testing.T, faults int, choose chooser) (done result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, seedOf(s.Name))
		r := &run{World: newWorld(t, s), choose: choose, budget: faults, news: make(chan struct{}, 1)}
		s.Set(r.World)
		for _, a := range r.World.actors {
			r.start(a)
		}
		for r.next() {
		}
		done.steps = r.steps
		done.pruned = len(r.steps) > 0 && r.steps[len(r.steps)-1].chosen < 0
		if !done.pruned {
			r.finish()
		}
		done.problems, done.trace, done.reached = r.readable(r.problems), r.trace, r.reached
	})
	return done
}

func (r *run) start(a *actor) {
	r.ticks++
	a.run, a.began, a.beganAt, a.afterRepair = r, time.Now(), r.ticks, r.registry.repaired
	r.actors = append(r.actors, a)
	for _, check := range r.checks {
		check()
	}
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

// next makes one step. It returns false once all actors have ended.
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
			r.problem("after %v an actor has not ended", hung)
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

// notice lets the world check the state after each step, and each actor that ended in
// that step.
func (r *run) notice() {
	for _, a := range r.actors {
		if a.through && a.endedAt == 0 {
			r.ticks++
			a.endedAt = r.ticks
			a.then()
			r.reached[a.Name+": "+a.result()] = true
			r.rows = append(r.rows, row{time.Since(r.began), a, "ENDS: " + a.result()})
		}
	}
}

// enabled returns the alternatives of the next step. Their order is the same in each
// run: the calls, then their faults.
func (r *run) enabled() []alternative {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.waiting, func(a, b *call) int { return strings.Compare(a.order(), b.order()) })
	var all []alternative
	for _, c := range r.waiting {
		all = append(all, alternative{call: c, fault: c.staying()})
	}
	if r.faults >= r.budget {
		return all
	}
	for _, plain := range all {
		if c := plain.call; plain.fault == nil && !c.late && c.actor.repeats == nil {
			for _, f := range c.faults() {
				all = append(all, alternative{c, f, true})
			}
		}
	}
	return all
}

// take makes one of the alternatives happen, and waits for a repetition after it.
func (r *run) take(enabled []alternative) bool {
	at := step{enabled, r.choose(len(r.steps), enabled)}
	r.mu.Lock()
	r.steps = append(r.steps, at) // calls that the step causes are born after it
	r.mu.Unlock()
	if len(r.steps) > maxSteps {
		r.problem("the run has more than %d steps", maxSteps)
	}
	if at.chosen < 0 || len(r.steps) > maxSteps {
		r.abandon()
		return false
	}
	chosen := enabled[at.chosen]
	r.remove(chosen.call)
	r.rows = append(r.rows, row{time.Since(r.began), chosen.call.actor, r.apply(chosen)})
	synctest.Wait()
	for _, check := range r.checks {
		check()
	}
	if len(r.actors) > 1 {
		r.awaitRepetition(chosen.call)
	}
	return true
}

func (r *run) allThrough() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(r.actors, func(a *actor) bool { return !a.through })
}

// awaitRepetition lets time pass until the call is made again, if it is.
func (r *run) awaitRepetition(c *call) {
	for end := time.Now().Add(c.patience); time.Now().Before(end); {
		if r.repeated(c) || !r.await(time.Until(end)) {
			return
		}
	}
}

// repeated reports whether there is nothing left to wait for.
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
	r.budget, r.choose = 0, first
	if r.registry.watched && !r.registry.unfinished {
		r.judgeRegistry()
	}
	for _, a := range slices.Clone(r.actors) {
		for again := a.again(); again != nil; again = again.again() {
			again.repeats = a
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
