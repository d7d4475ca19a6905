// Package sim runs the functions and the operator's acts in every order of their
// calls to AWS, and with every fault of every call, in virtual time. Only tests import it.
//
// A Suite (suite.go) plays each scenario many times: with each fault of each call, in each
// order of the calls (explore.go), or with the choices of a seed.
//
// A Scenario (world.go) makes a World: its rows and files, and its actors (actor.go). An
// actor is a request (request.go) or an act of the operator (act.go). Each function's
// main.go assembles the handler, with the real SDK and the real retry policy.
//
// A run (this file) plays one schedule of a scenario, in one testing/synctest bubble. The
// HTTP client below the SDK parks each call (call.go) until the run chooses it. Then package
// awsmodel applies the call and responds, or a fault (fault.go) happens instead. So the
// real time-outs, back-offs and deadlines pass, and no test waits for them.
//
// Each actor notes facts when it ends, for example that a file was deleted. When all have
// ended, each request is sent again, without faults. Then the run is judged: judge.go judges
// each response and its log line; create.go, delete.go and job.go judge the results of
// their operations; registry.go and credential.go judge what is stored; history.go
// searches an order in which all facts are possible.
//
// A schedule is a short text. It contains only the steps that differ from the first
// choice. The first failure of a suite prints one line to replay it, and its calls as a
// table with a column for each actor (trace.go). The others print the line alone. A scenario
// of several actors names the results that some schedule must reach: an exhaustive search
// over orders that all end early shows nothing.
package sim

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"
)

// run is one schedule of a scenario.
type run struct {
	*World

	choose  chooser
	budget  int // number of faults that may still happen
	started []*actor
	steps   []step
	own     int // number of steps before the requests are repeated
	rows    []row
	ticks   int // beginnings and ends of actors

	mu      sync.Mutex
	waiting []*call
	news    chan struct{} // a call waits, or an actor has ended
}

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
func (s Scenario) play(t *testing.T, faults int, choose chooser) *run {
	t.Helper()
	r := &run{budget: faults, choose: choose}
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, seedOf(s.Name))
		r.World, r.news = newWorld(t, s), make(chan struct{}, 1)
		s.Set(r.World)
		r.play()
	})
	return r
}

func (r *run) play() {
	for _, a := range r.actors {
		r.start(a)
	}
	r.playOn()
	r.own = len(r.steps)
	if r.pruned() {
		return
	}
	for _, judge := range r.whenEnded {
		judge()
	}
	r.repeat()
	r.judge()
}

// pruned reports whether the chooser ended the run.
func (r *run) pruned() bool { return r.own > 0 && r.steps[r.own-1].chosen < 0 }

func (r *run) start(a *actor) {
	r.ticks++
	a.run, a.began, a.beganAt = r, time.Now(), r.ticks
	r.started = append(r.started, a)
	r.check()
	go func() {
		a.doWork()
		r.mu.Lock()
		a.ended, a.through = time.Now(), true
		r.mu.Unlock()
		r.signal()
	}()
	synctest.Wait()
}

// repeat lets each client repeat its request, without faults and one after the other.
func (r *run) repeat() {
	r.budget, r.choose = 0, first
	for _, a := range r.actors {
		for again := a.work.again(); again != nil; again = again.work.again() {
			again.repeats = a
			r.start(again)
			r.playOn()
		}
	}
}

func (r *run) signal() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// playOn makes steps until all actors have ended.
func (r *run) playOn() {
	for {
		enabled := r.awaitEnabled()
		if len(enabled) == 0 || !r.take(enabled) {
			return
		}
	}
}

// awaitEnabled returns the alternatives of the next step, none if all actors have ended.
func (r *run) awaitEnabled() []alternative {
	begun := time.Now()
	for {
		synctest.Wait()
		r.notice()
		enabled := r.enabled()
		if len(enabled) > 0 || r.allThrough() {
			return enabled
		}
		if time.Since(begun) > hung {
			r.problem("after %v an actor has not ended", hung)
			return nil
		}
		r.await(hung)
	}
}

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

// notice lets each actor that has just ended note its facts.
func (r *run) notice() {
	for _, a := range r.started {
		if a.through && a.endedAt == 0 {
			r.ticks++
			a.endedAt = r.ticks
			a.work.show()
			r.reached[a.Name+": "+a.work.result()] = true
			r.rows = append(r.rows, row{time.Since(r.began), a, "ENDS: " + a.work.result()})
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
	if r.budget <= 0 {
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

// take makes one of the alternatives happen, and waits for a repetition after it. It
// returns false if the run ends here.
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
	r.check()
	if len(r.started) > 1 {
		r.awaitRepetition(chosen.call)
	}
	return true
}

func (r *run) allThrough() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(r.started, func(a *actor) bool { return !a.through })
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
	for _, a := range r.started {
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
