package cases

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// trial is one run of a case's operation, with at most one disturbance.
type trial struct {
	disturbance

	name        string
	concurrent  string // the name of the concurrent operation, or ""
	first, last bool   // it runs before the first call, or after the last
	inFlight    int    // the call after which it goes on, or 0
	onEngines   bool   // also
}

// expected returns the results that are right:
//
//	fault  concurrent operation                     result
//	no     none, or after the last call             as alone
//	no     before the first call                    AfterConcurrent
//	no     between two calls, or in flight          as alone or AfterConcurrent
//	yes    none                                     FaultOutcomes; without it as alone if the call is optional
//	                                                or the fault recovers (once, or usable), else Failed
//	yes    between the call and its repetition      as with none, AfterConcurrent or AfterLostAnswer
func (t *trial) expected(op *Operation, other Concurrent, alone string) []string {
	after := cmp.Or(other.AfterConcurrent, alone)
	switch {
	case t.fault != nil && t.concurrent != "":
		return append(t.afterFault(op, alone), after, cmp.Or(other.AfterLostAnswer, after))
	case t.fault != nil:
		return t.afterFault(op, alone)
	case t.first:
		return []string{after}
	case t.concurrent == "" || t.last:
		return []string{alone}
	default:
		return []string{alone, after}
	}
}

// afterFault returns the results that are right after the fault alone.
func (t *trial) afterFault(op *Operation, alone string) []string {
	var known []string
	if op.FaultOutcomes != nil {
		known = op.FaultOutcomes(t.at, t.fault, t.always, alone)
	}
	switch f := t.fault; {
	case known != nil:
		return known
	case slices.Contains(op.OptionalCalls, t.at.Kind), f.Recovers && (!t.always || f.Usable):
		return []string{alone}
	default:
		return []string{op.Failed}
	}
}

// longest returns the time that an operation may take if it recovers, or 0 for any.
func (t *trial) longest(op *Operation) time.Duration {
	const soon = 1500 * time.Millisecond
	switch f := t.fault; {
	case f == nil || t.always || !f.Recovers || t.concurrent != "" || op.Limit > 0 || f.lastsTwoSeconds:
		return 0
	case f == gone:
		return 200 * time.Millisecond
	case f.attemptTimesOut:
		return soon + silence
	default:
		return soon
	}
}

// observed is what a trial has shown.
type observed struct {
	problems []string
	result   string
	stored   string
	trace    trace
	met      bool // the disturbance has happened
}

// runner plays a case.
type runner struct {
	Case

	t        *testing.T
	setup    *setup
	tried    map[string]bool // kinds of calls with all faults, and operations with each variant
	trace    trace           // of the operation alone
	alone    [2]string       // what it then leaves: on the model, on engines
	others   map[string]trace
	trials   int
	failures int
	unmet    int
}

func (r *runner) run() {
	began := time.Now()
	r.judge(trial{onEngines: *engines != "", name: "without a fault"})
	for _, t := range r.disturbed() {
		t.onEngines = *engines == "all" || *engines == "main" && (t.fault == nil || t.concurrent != "" || t.onEngines)
		if r.judge(t); r.failures >= 3 {
			return
		}
	}
	if r.unmet > 0 {
		r.t.Errorf("%d of %d trials met no disturbance", r.unmet, r.trials)
	}
	r.t.Logf("%d trials in %v", r.trials, time.Since(began).Round(time.Millisecond))
}

// judge runs a trial: on the model, or on both, which it compares.
func (r *runner) judge(t trial) {
	r.trials++
	got := r.runTrial(t, false)
	if r.trials == 1 {
		r.trace = got.trace // the engines need it to hold a call until its siblings are made
	}
	if !got.met {
		r.unmet++
		r.t.Logf("not met: %s", t.name)
	}
	if t.onEngines && r.SkipEngines == "" && len(got.problems) == 0 {
		real := r.runTrial(t, true)
		for _, problem := range real.problems {
			got.problems = append(got.problems, "on engines: "+problem)
		}
		if t.fault != nil && t.fault.lastsTwoSeconds { // as many calls as random pauses allow
			real.trace.calls = got.trace.calls
		}
		if r.RandomOrder && (t.concurrent != "" || got.result != r.trace.result) {
			real.result, real.stored, real.trace = got.result, got.stored, got.trace
		}
		for what, both := range map[string][2]string{
			"results": {got.result, real.result}, "stored": {got.stored, real.stored}, "calls": {got.trace.text(r.trials == 1), real.trace.text(r.trials == 1)},
		} {
			if both[0] != both[1] {
				got.problems = append(got.problems, fmt.Sprintf("model and engines differ in %s (-model +engines):\n%s", what, gocmp.Diff(both[0], both[1])))
			}
		}
	}
	if len(got.problems) > 0 {
		r.failures++
		r.t.Errorf("%s:\n  %s", t.name, strings.Join(got.problems, "\n  "))
	}
}

// runTrial runs a trial in a new Environment.
func (r *runner) runTrial(t trial, real bool) (got observed) {
	got.problems = inEnvironment(r.t, real, r.setup, func(env *Environment) {
		s := r.SetUp(env)
		op, other := &s.Operation, s.concurrent(t.concurrent)
		placed := r.place(env, &t, other)
		result, c := env.run(op, &r.trace, t.disturbance)
		placed.end()

		got.met = (t.fault == nil || len(c.met) > 0) && (t.concurrent == "" || len(placed.outcomes) > 0)
		got.result, got.trace = result.Text, traceOf(c, result)
		outcomes := append([]Outcome{{Operation: op.Name, Result: result, Fault: t.fault}}, placed.outcomes...)
		if r.trials == 1 {
			env.checkCalls(op, got.trace)
		} else {
			r.check(c, &t, other, outcomes)
		}
		s.judge(outcomes)
		if t.onEngines {
			got.stored = env.dump()
		}
		if r.settled(env, &t, got) {
			return
		}
		again, _ := env.run(op, nil, disturbance{})
		if again.Text == op.Failed {
			env.Broken("result", "%s repeated without a fault ends in %s", op.Name, again.Text)
		}
		s.judge(append(outcomes, Outcome{Operation: op.Name, Again: true, Result: again}))
	})
	return got
}

// placed is the concurrent operation of a trial.
type placed struct {
	outcomes []Outcome // none before it has ended
	end      func()    // lets it go on, and waits for its end
}

// place begins a concurrent operation that is in flight, and lets the disturbance run any other.
func (r *runner) place(env *Environment, t *trial, other Concurrent) *placed {
	p := &placed{end: func() {}}
	note := func(result Result) {
		p.outcomes = append(p.outcomes, Outcome{Operation: other.Operation.Name, Result: result})
	}
	switch {
	case t.concurrent == "":
	case t.inFlight > 0:
		calls := r.traceAlone(other).calls
		p.end = env.hold(&other.Operation, calls[len(calls)-1], note)
		t.afterCall = func(number int) {
			if number >= t.inFlight {
				p.end()
			}
		}
	default:
		t.disturbance.concurrent = func() {
			result, _ := env.run(&other.Operation, nil, disturbance{})
			note(result)
		}
	}
	return p
}

// hold begins an operation and stops it before a call. release lets it go on, and waits for its end.
func (env *Environment) hold(op *Operation, at Call, note func(Result)) (release func()) {
	stopped, released, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		result, _ := env.run(op, nil, disturbance{beforeCall: func(ctx context.Context, c Call) bool {
			if !c.is(at) {
				return true
			}
			close(stopped)
			select {
			case <-released:
				return true
			case <-ctx.Done():
			case <-env.waited:
			}
			return false
		}})
		note(result)
	}()
	select {
	case <-stopped:
	case <-ended:
	}
	var once sync.Once
	return func() {
		once.Do(func() { close(released) })
		<-ended
	}
}

// check compares the results, and the time, with the expected ones. A call that is repeated often
// needs pauses, unless calls of its kind run side by side.
func (r *runner) check(c *client, t *trial, other Concurrent, outcomes []Outcome) {
	env, op, result := c.env, c.operation, outcomes[0].Result
	if want := t.expected(op, other, r.trace.result); !slices.Contains(want, result.Text) {
		env.Broken("result", "%s ends in %q, want %q", op.Name, result.Text, slices.Compact(want))
	}
	for _, o := range outcomes[1:] {
		if want := append(slices.Clone(other.OwnOutcomes), r.traceAlone(other).result); !slices.Contains(want, o.Result.Text) {
			env.Broken("result", "%s ends in %q, want %q: %v", o.Operation, o.Result.Text, want, o.Result.Shown)
		}
	}
	if took, most := result.Ended.Sub(result.Began), t.longest(op); most > 0 && took > most && !env.OnEngines() {
		env.Broken("line", "duration_ms is %d, at most %d are allowed", took.Milliseconds(), most.Milliseconds())
	}
	sameKind := func(c Call) bool { return c.Kind == t.at.Kind }
	if n := len(c.met); n > manyAttempts && c.met[n-1].at.Sub(c.met[0].at) < 50*time.Millisecond && !slices.ContainsFunc(r.trace.siblings(t.at), sameKind) {
		env.Broken("calls", "%s makes %d attempts without a pause", c.met[0].Call, n)
	}
}

// checkCalls compares what an operation does without a disturbance with what it promises.
func (env *Environment) checkCalls(op *Operation, made trace) {
	if op.Want != "" && made.result != op.Want {
		env.Broken("result", "%s ends in %q, want %q", op.Name, made.result, op.Want)
	}
	if op.Calls == nil {
		return
	}
	var kinds []string
	for _, c := range made.calls {
		kinds = append(kinds, c.Kind)
	}
	slices.Sort(kinds)
	if want := slices.Sorted(slices.Values(op.Calls)); !slices.Equal(kinds, want) {
		env.Broken("calls", "%s makes the calls %q, want %q", op.Name, kinds, want)
	}
	if made.rounds != op.Rounds {
		env.Broken("calls", "%s has %d round trips, want %d", op.Name, made.rounds, op.Rounds)
	}
}

// settled reports whether the operation has ended like the one alone, and left the same.
func (r *runner) settled(env *Environment, t *trial, got observed) bool {
	left, on := got.stored, 1
	if !env.OnEngines() {
		left, on = comparable(env.model.Changes(env.prepared.model)), 0
	}
	if r.trials == 1 {
		r.alone[on] = left
		return false
	}
	return t.concurrent == "" && got.result == r.trace.result && left == r.alone[on]
}

// traceAlone returns what a concurrent operation does alone.
func (r *runner) traceAlone(other Concurrent) trace {
	name := other.Operation.Name
	if _, known := r.others[name]; !known {
		inEnvironment(r.t, false, r.setup, func(env *Environment) {
			s := r.SetUp(env)
			other := s.concurrent(name)
			result, c := env.run(&other.Operation, nil, disturbance{})
			r.others[name] = traceOf(c, result)
		})
	}
	return r.others[name]
}

// disturbed returns the trials of the case after the first one.
func (r *runner) disturbed() (all []trial) {
	var s Scenario
	inEnvironment(r.t, false, r.setup, func(env *Environment) { s = r.SetUp(env) })
	if !s.Operation.ConcurrentOnly {
		all = r.faults(s.Operation.OptionalCalls)
	}
	for _, other := range s.Concurrent {
		r.traceAlone(other)
		if other.InFlight {
			all = append(all, r.inFlight(other)...)
		} else {
			all = append(all, r.interleaved(other)...)
		}
	}
	return all
}

// faults returns the trials with a fault. A time-out of the whole operation at an optional call is
// left out.
func (r *runner) faults(optional []string) (all []trial) {
	if len(r.trace.inRound(1)) > 0 {
		all = append(all, trial{disturbance: disturbance{connectionsLost: true}, name: "all connections are lost"})
	}
	for _, c := range r.trace.calls {
		kind, operation := c.Kind, strings.Fields(c.Kind)[0]
		if strings.Contains(kind, "Object") {
			kind += r.Versioning
		}
		for _, f := range catalogue(c) {
			isNew := !r.tried[kind] && (!f.variant || !r.tried[operation])
			if !f.main && !isNew || slices.Contains(optional, c.Kind) && (f.requestTimesOut || f.interrupts) {
				continue
			}
			all = append(all, trial{disturbance: disturbance{fault: f, at: c}, onEngines: f.main && !r.tried[kind], name: fmt.Sprintf("%s: %s", c, f.Name)})
			if f.Recovers && !f.appliedLate && !f.lastsTwoSeconds && !r.tried[kind] {
				all = append(all, trial{disturbance: disturbance{fault: f, at: c, always: true}, name: fmt.Sprintf("%s: %s, each time", c, f.Name)})
			}
		}
		r.tried[kind], r.tried[operation] = true, true
	}
	return all
}

// interleaved returns the trials with another operation that runs completely between two calls.
// Calls of one round are applied before it or after it: each alone, all but each, none, and at the
// end all.
func (r *runner) interleaved(other Concurrent) (all []trial) {
	name := other.Operation.Name
	for round := 1; round <= r.trace.rounds; round++ {
		calls := r.trace.inRound(round)
		sets := map[string][]Call{"": nil}
		for _, c := range calls {
			if len(calls) > 1 {
				one, rest := []Call{c}, slices.DeleteFunc(slices.Clone(calls), c.is)
				sets[fmt.Sprint(one)], sets[fmt.Sprint(rest)] = one, rest
			}
		}
		if round == r.trace.rounds {
			sets[fmt.Sprint(calls)] = calls
		}
		for _, key := range slices.Sorted(maps.Keys(sets)) {
			t := trial{disturbance: disturbance{round: round, after: sets[key]}, concurrent: name}
			t.first, t.last = round == 1 && len(t.after) == 0, round == r.trace.rounds && len(t.after) == len(calls)
			t.name = fmt.Sprintf("%s in round %d after %v", name, round, t.after)
			all = append(all, t)
		}
	}
	for _, c := range r.trace.calls {
		if writes.MatchString(c.Kind) {
			all = append(all, trial{disturbance: disturbance{fault: lost, at: c}, concurrent: name, name: fmt.Sprintf("%s after a lost answer to %s", name, c)})
		}
	}
	return all
}

// inFlight returns the trials with a request that is in flight until after each call.
func (r *runner) inFlight(other Concurrent) (all []trial) {
	name := other.Operation.Name
	for number := range len(r.trace.calls) {
		all = append(all, trial{concurrent: name, inFlight: number + 1, name: fmt.Sprintf("%s is in flight until after call %d", name, number+1)})
	}
	return all
}

// trace is what an operation has done.
type trace struct {
	calls  []Call
	rounds int // round trips: the length of the longest chain of calls that wait for each other
	result string
}

func traceOf(c *client, r Result) trace {
	t := trace{rounds: c.deepest, result: r.Text}
	for _, call := range c.calls {
		t.calls = append(t.calls, *call)
	}
	slices.SortFunc(t.calls, func(a, b Call) int {
		return cmp.Or(a.Round-b.Round, strings.Compare(a.Kind, b.Kind), a.Number-b.Number)
	})
	return t
}

// text names the calls, and the round trips if nothing disturbed them: with a disturbance they
// depend on the machine.
func (t *trace) text(withRounds bool) string {
	var calls []string
	for _, c := range t.calls {
		calls = append(calls, c.String())
	}
	slices.Sort(calls)
	text := strings.Join(calls, "\n")
	if withRounds {
		text += fmt.Sprintf("\n%d round trips", t.rounds)
	}
	return text
}

// inRound returns the calls of a round.
func (t *trace) inRound(round int) []Call {
	return slices.DeleteFunc(slices.Clone(t.calls), func(c Call) bool { return c.Round != round })
}

// siblings returns the other calls of the call's round.
func (t *trace) siblings(c Call) []Call {
	i := slices.IndexFunc(t.calls, c.is)
	if i < 0 {
		return nil
	}
	return slices.DeleteFunc(t.inRound(t.calls[i].Round), c.is)
}
