// Package cases plays a request to a function, or a command of the operator, with each fault of
// each of its calls to AWS, and beside other acts. Only tests import it.
//
// A Case (this file) stores rows and files, once for all its Worlds (Prepared), and returns an Act
// and those beside it. The act is run once to learn its calls. Then it is run again, each time in a
// new World (world.go) and with one disturbance (client.go):
//
//   - each fault of the menu (menu.go) at a call, once and each time. The whole menu is tried
//     once for each kind of call, the main faults at every call;
//   - another act run whole before and after each call, also while an answer is lost;
//   - for an act that waits, a request held before its last write until after each call.
//
// What a fault must end in is said: by the menu, and by the act where it knows better. Each
// verdict judges the result, the log line, the audit line and what is stored. An act that did not
// end like the one without a fault, or left something else, is then repeated without a fault, and
// must finish. The calls, and the chain of calls that wait for each other (round trips), are
// compared with the promised ones.
//
// The World is a model of AWS in virtual time (testing/synctest): no machine decides and waiting
// costs nothing. With -engines=all each verdict is given on the real engines too; with -engines=main
// only those without a fault, beside another act, or with a main fault, once for each kind of call.
// The test fails where the two worlds differ: in the result, in what is stored or in the calls.
//
// An Overlap (overlap.go) runs acts side by side, with delays from a seed.
package cases

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	gocmp "github.com/google/go-cmp/cmp"
)

// Act is a request to a function (World.Request), or a command of the operator.
type Operation struct {
	Name string
	// Do runs the act once. Its calls go through the client; it ends with the context.
	Run func(context.Context, aws.HTTPClient) Result
	// Want is the Text of the result, Calls are the promised calls, by kind, and Rounds is how
	// many of them come one after the other: each without a fault or another act. An empty
	// Want is not checked; without Calls, neither are the Rounds.
	Want   string
	Calls  []string
	Rounds int
	// Failed is the Text of the result if a call that is needed fails.
	Failed string
	// Spare are kinds of calls whose failure changes nothing.
	OptionalCalls []string
	// Ends returns the results that a fault must end in, where neither the menu nor Spare says
	// it: each if it is met each time, plain for the result without a fault. Nil means that the
	// menu decides.
	FaultOutcomes func(c Call, f *Fault, each bool, plain string) []string
	// Limit is the time that the act has on the model, 10 s by default.
	Limit time.Duration
	// Unconditional means that its writes need no condition.
	Unconditional bool
	// NoMenu means that the act is played beside the others only.
	ConcurrentOnly bool
}

// Result is what the user of an act sees.
type Result struct {
	// Text is compared: between the runs of an act, and between the two worlds.
	Text         string
	Shown        any // for the case's own judge
	Began, Ended time.Time
}

// Beside is another act.
type Concurrent struct {
	Operation Operation
	// Then is the result of the case's act if this act came first.
	AfterConcurrent string
	// Lost is the result if this act came between a call whose answer was lost and its repetition,
	// where that is another one.
	AfterLostAnswer string
	// Ends are further results of this act beside the case's one; without it, only its result
	// alone.
	OwnOutcomes []string
	// Held means that this act is a request, and the case's act waits for such requests: it
	// begins first, and is held before its last call until after each call of the case's act.
	InFlight bool
}

// Play is what a case plays in one World.
type Scenario struct {
	Operation  Operation
	Concurrent []Concurrent
	// Judge judges the results so far and what is stored. It is called when all have ended,
	// and again after the act was repeated. Without it, only results are judged.
	Judge func(outcomes []Outcome)
}

// Done is an act that ended.
type Outcome struct {
	Operation string
	Again     bool // it was repeated, without a fault
	Fault     *Fault
	Result    Result
}

// Case is a situation and an act in it.
type Case struct {
	Name       string
	Versioning string // of the bucket: "", "Enabled" or "Suspended"
	// ModelOnly is the reason why the engines do not play the case.
	SkipEngines string
	SetUp       func(*Environment) Scenario
}

// plan is what an act does without a disturbance.
type trace struct {
	calls  []Call
	rounds int
	result string
}

// text names the calls, and how many come one after the other if nothing disturbed them: with a
// disturbance that depends on the machine.
func (p *trace) text(quiet bool) string {
	var calls []string
	for _, c := range p.calls {
		calls = append(calls, c.String())
	}
	slices.Sort(calls)
	text := strings.Join(calls, "\n")
	if quiet {
		text += fmt.Sprintf("\n%d round trips", p.rounds)
	}
	return text
}

func (p *trace) has(round int, c Call) bool {
	return slices.ContainsFunc(p.calls, func(d Call) bool { return d.Round == round && d.is(c) })
}

// siblings are the calls of the same round.
func (p *trace) siblings(c Call) (all []Call) {
	i := slices.IndexFunc(p.calls, c.is)
	for _, d := range p.calls {
		if i >= 0 && d.Round == p.calls[i].Round && !d.is(c) {
			all = append(all, d)
		}
	}
	return all
}

// life is the context of an act. The time-out of the act, a fault or an interruption ends it.
type life struct {
	context.Context

	mu   sync.Mutex
	done chan struct{}
	err  error
}

func newLife(limit time.Duration) *life {
	l := &life{done: make(chan struct{})}
	base, cancel := context.WithTimeout(context.Background(), limit)
	l.Context = base
	context.AfterFunc(base, func() { l.end(context.DeadlineExceeded) })
	context.AfterFunc(l, cancel)
	return l
}

// Done implements context.Context.
func (l *life) Done() <-chan struct{} { return l.done }

// Err implements context.Context.
func (l *life) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *life) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		close(l.done)
	}
}

// limitOfReal is the time of an act on engines: a busy machine must not end it.
const limitOfReal = 2 * time.Minute

// run runs an act with a disturbance.
func (env *Environment) run(op *Operation, p *trace, d disturbance) (Result, *client) {
	limit := cmp.Or(op.Limit, 10*time.Second)
	if env.OnEngines() {
		limit = limitOfReal
	}
	c := &client{
		world: env, operation: op, trace: p, life: newLife(limit), disturbance: d,
		ran: make(chan struct{}), byID: map[string]*Call{}, made: map[string]chan struct{}{}, answers: map[string]chan struct{}{},
	}
	defer c.life.end(context.Canceled)
	if p == nil {
		c.trace = &trace{}
	}
	for _, call := range c.trace.calls {
		c.made[call.String()], c.answers[call.String()] = make(chan struct{}), make(chan struct{})
	}
	began := time.Now()
	r := op.Run(c.life, c)
	r.Ended = time.Now()
	if r.Began.IsZero() {
		r.Began = began
	}
	for _, apply := range c.later {
		apply()
	}
	return r, c
}

// quiet reports whether nothing disturbs the act.
func (d *disturbance) quiet() bool {
	return d.fault == nil && d.concurrent == nil && d.every == nil && d.delay == nil && !d.frozen && d.most == 0
}

// verdict is one run of a case.
type trial struct {
	disturbance

	concurrent    string // name of the act beside, or ""
	inFlightUntil int    // the call after which that act goes on, or 0
	onEngines     bool   // it is given on engines too
	name          string
}

// seen is what a verdict has seen.
type observed struct {
	problems []string
	result   string
	stored   string
	trace    trace
	met      bool // the disturbance has happened
}

// Suite plays the cases of a package.
type Suite struct {
	Cases    []Case
	Overlaps []Overlap
}

// Play plays the suite.
func (s Suite) Run(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a verdict makes much garbage and keeps no memory
	tried := map[string]bool{}
	for _, c := range s.Cases {
		t.Run(c.Name, func(t *testing.T) {
			(&runner{t: t, Case: c, tried: tried, concurrentTraces: map[string]trace{}, setup: &setup{c.Versioning, 0, map[int]prepared{}}}).run()
		})
	}
	for _, o := range s.Overlaps {
		t.Run(o.Name, func(t *testing.T) { o.play(t, *night/time.Duration(len(s.Overlaps))) })
	}
}

// player plays a case.
type runner struct {
	Case

	t                *testing.T
	setup            *setup
	tried            map[string]bool // kinds of calls with the whole menu, and operations with each reason
	trace            trace
	plain            [2]string // what is stored without a fault: on the model, on engines
	played           int
	unmet            int
	failures         int
	concurrentTraces map[string]trace
}

func (p *runner) run() {
	began := time.Now()
	p.judge(trial{onEngines: *engines != "", name: "without a fault"})
	for _, v := range p.trials() {
		v.onEngines = *engines == "all" || *engines == "main" && (v.fault == nil || v.concurrent != "" || v.onEngines)
		if p.failures >= 3 {
			return
		}
		p.judge(v)
	}
	if p.unmet > 0 {
		p.t.Errorf("%d of %d verdicts met no disturbance", p.unmet, p.played)
	}
	p.t.Logf("%d verdicts in %v", p.played, time.Since(began).Round(time.Millisecond))
}

// judge gives a verdict: on the model, or in both worlds.
func (p *runner) judge(v trial) {
	p.played++
	got := p.runTrial(v, false)
	if p.played == 1 {
		p.trace = got.trace // the engines need it to hold a call until its siblings are made
	}
	if !got.met {
		p.unmet++
		p.t.Logf("not met: %s", v.name)
	}
	if v.onEngines && p.SkipEngines == "" && len(got.problems) == 0 {
		real := p.runTrial(v, true)
		for _, problem := range real.problems {
			got.problems = append(got.problems, "on engines: "+problem)
		}
		if v.fault.is(lastsTwoSeconds) { // as many calls as random pauses allow
			real.trace.calls = got.trace.calls
		}
		for what, both := range map[string][2]string{
			"results": {got.result, real.result}, "stored": {got.stored, real.stored}, "calls": {got.trace.text(p.played == 1), real.trace.text(p.played == 1)},
		} {
			if both[0] != both[1] {
				got.problems = append(got.problems, fmt.Sprintf("the worlds differ in %s (-model +engines):\n%s", what, gocmp.Diff(both[0], both[1])))
			}
		}
	}
	if len(got.problems) > 0 {
		p.failures++
		p.t.Errorf("%s:\n  %s", v.name, strings.Join(got.problems, "\n  "))
	}
}

// once gives a verdict in a new World.
func (p *runner) runTrial(v trial, real bool) (got observed) {
	got.problems = inEnvironment(p.t, real, p.setup, func(env *Environment) {
		scenario := p.SetUp(env)
		if scenario.Judge == nil {
			scenario.Judge = func([]Outcome) {}
		}
		var outcomes []Outcome
		d := v.disturbance
		release := func() {}
		if v.concurrent != "" {
			b := scenario.concurrent(v.concurrent)
			note := func(r Result) { outcomes = append(outcomes, Outcome{Operation: b.Operation.Name, Result: r}) }
			if v.inFlightUntil > 0 {
				release = env.hold(&b.Operation, p.lastOf(b), note)
				d.every = func(calls int) {
					if calls >= v.inFlightUntil {
						release()
					}
				}
			} else {
				d.concurrent = func() {
					r, _ := env.run(&b.Operation, nil, disturbance{})
					note(r)
				}
			}
		}
		r, c := env.run(&scenario.Operation, &p.trace, d)
		release()
		got.met = d.fault == nil || len(c.met) > 0
		got.met = got.met && (v.concurrent == "" || len(outcomes) > 0)
		first := Outcome{Operation: scenario.Operation.Name, Result: r, Fault: d.fault}
		got.result, got.trace = r.Text, traceOf(c, r)
		p.judgeResult(env, v, scenario, c, r, outcomes)
		outcomes = append([]Outcome{first}, outcomes...)
		scenario.Judge(outcomes)
		if p.settled(env, v, &got) {
			return
		}
		again, _ := env.run(&scenario.Operation, nil, disturbance{})
		if again.Text == scenario.Operation.Failed {
			env.Broken("result", "%s repeated without a fault ends in %s", scenario.Operation.Name, again.Text)
		}
		scenario.Judge(append(outcomes, Outcome{Operation: scenario.Operation.Name, Again: true, Result: again}))
	})
	return got
}

// settled reports whether the act has ended like the one without a fault, and left the same.
func (p *runner) settled(env *Environment, v trial, got *observed) bool {
	if v.onEngines {
		got.stored = env.dump()
	}
	left, world := got.stored, 1
	if !env.OnEngines() {
		left, world = comparable(env.model.Changes(env.prepared.model)), 0
	}
	if p.played == 1 {
		p.plain[world] = left
		return false
	}
	return v.concurrent == "" && got.result == p.trace.result && left == p.plain[world]
}

// planOf is what the act did.
func traceOf(c *client, r Result) trace {
	p := trace{rounds: c.deepest, result: r.Text}
	for _, call := range c.calls {
		p.calls = append(p.calls, *call)
	}
	slices.SortFunc(p.calls, func(a, b Call) int {
		return cmp.Or(a.Round-b.Round, strings.Compare(a.Kind, b.Kind), a.Number-b.Number)
	})
	return p
}

// beside is the act of the name.
func (p Scenario) concurrent(name string) Concurrent {
	return p.Concurrent[slices.IndexFunc(p.Concurrent, func(b Concurrent) bool { return b.Operation.Name == name })]
}

// inRound are the planned calls of a round.
func (p *runner) inRound(round int) []Call {
	return slices.DeleteFunc(slices.Clone(p.trace.calls), func(c Call) bool { return c.Round != round })
}

// alone is what an act beside does alone.
func (p *runner) traceAlone(b Concurrent) trace {
	if _, known := p.concurrentTraces[b.Operation.Name]; !known {
		p.inEnvironment(func(env *Environment) {
			act := p.SetUp(env).concurrent(b.Operation.Name).Operation
			r, c := env.run(&act, nil, disturbance{})
			p.concurrentTraces[b.Operation.Name] = traceOf(c, r)
		})
	}
	return p.concurrentTraces[b.Operation.Name]
}

// lastOf is the last call of an act beside.
func (p *runner) lastOf(b Concurrent) Call {
	calls := p.traceAlone(b).calls
	return calls[len(calls)-1]
}

// hold begins an act and holds it before a call. release lets it go on, and waits for its end.
func (env *Environment) hold(op *Operation, at Call, note func(Result)) (release func()) {
	held, released, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		r, _ := env.run(op, nil, disturbance{before: func(ctx context.Context, c Call) bool {
			if !c.is(at) {
				return true
			}
			close(held)
			select {
			case <-released:
				return true
			case <-ctx.Done():
			case <-env.waited:
			}
			return false
		}})
		note(r)
	}()
	select {
	case <-held:
	case <-ended:
	}
	var begun atomic.Bool
	return func() {
		if begun.CompareAndSwap(false, true) {
			close(released)
		}
		<-ended
	}
}

// judgeResult compares the result of the act with those that the disturbance must end in.
func (p *runner) judgeResult(env *Environment, v trial, scenario Scenario, c *client, r Result, outcomes []Outcome) {
	op := scenario.Operation
	if p.played == 1 {
		p.judgeCost(env, op, traceOf(c, r))
		if op.Want != "" && r.Text != op.Want {
			env.Broken("result", "%s ends in %q, want %q", op.Name, r.Text, op.Want)
		}
		return
	}
	want := []string{p.trace.result}
	if v.fault != nil {
		want = v.ends(op, p.trace.result)
	}
	if v.concurrent != "" {
		b := scenario.concurrent(v.concurrent)
		first, last := v.round == 1 && len(v.after) == 0, v.round == p.trace.rounds && len(v.after) == len(p.inRound(v.round))
		switch then := cmp.Or(b.AfterConcurrent, p.trace.result); {
		case v.fault == nil && v.inFlightUntil == 0 && first:
			want = []string{then}
		case v.fault != nil:
			want = append(want, then, cmp.Or(b.AfterLostAnswer, then))
		case !last:
			want = append(want, then)
		}
		if ends := append(slices.Clone(b.OwnOutcomes), p.traceAlone(b).result); !slices.Contains(ends, outcomes[0].Result.Text) {
			env.Broken("result", "%s ends in %q, want %q: %v", b.Operation.Name, outcomes[0].Result.Text, ends, outcomes[0].Result.Shown)
		}
	}
	if !slices.Contains(want, r.Text) {
		env.Broken("result", "%s ends in %q, want %q", op.Name, r.Text, slices.Compact(want))
	}
	if !env.OnEngines() && v.fault != nil {
		v.judgeTime(env, op, r)
	}
}

// ends are the results that the fault must end in.
func (v *trial) ends(op Operation, plain string) []string {
	if op.FaultOutcomes != nil {
		if ends := op.FaultOutcomes(v.at, v.fault, v.each, plain); ends != nil {
			return ends
		}
	}
	switch {
	case slices.Contains(op.OptionalCalls, v.at.Kind):
		return []string{plain}
	case v.fault.is(recovers) && (!v.each || v.fault.is(usable)):
		return []string{plain}
	default:
		return []string{op.Failed}
	}
}

// judgeTime bounds the time of a request that recovers.
func (v *trial) judgeTime(env *Environment, op Operation, r Result) {
	most := 1500 * time.Millisecond
	switch {
	case v.each || !v.fault.is(recovers) || v.concurrent != "" || op.Limit > 0 || v.fault.is(lastsTwoSeconds):
		return
	case v.fault == gone:
		most = 200 * time.Millisecond
	case v.fault.is(attemptTimesOut):
		most += silence
	}
	if took := r.Ended.Sub(r.Began); took > most {
		env.Broken("line", "duration_ms is %d, at most %d are allowed", took.Milliseconds(), most.Milliseconds())
	}
}

// judgeCost compares the calls without a fault with the promised ones.
func (p *runner) judgeCost(env *Environment, op Operation, made trace) {
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

// all are the verdicts of the case after the first one.
func (p *runner) trials() (all []trial) {
	var shape Scenario
	p.inEnvironment(func(env *Environment) { shape = p.SetUp(env) })
	if !shape.Operation.ConcurrentOnly {
		all = p.faults(shape.Operation.OptionalCalls)
	}
	for _, b := range shape.Concurrent {
		p.traceAlone(b)
		if b.InFlight {
			all = append(all, p.inFlight(b)...)
		} else {
			all = append(all, p.interleaved(b)...)
		}
	}
	return all
}

// look calls do in a World without a verdict.
func (p *runner) inEnvironment(do func(*Environment)) { inEnvironment(p.t, false, p.setup, do) }

// faults are the verdicts with a fault. A spare call's time-out of the whole act is left out.
func (p *runner) faults(spare []string) (all []trial) {
	if slices.ContainsFunc(p.trace.calls, func(c Call) bool { return c.Round == 1 }) {
		all = append(all, trial{disturbance: disturbance{frozen: true}, name: "all connections are lost"})
	}
	for _, c := range p.trace.calls {
		kind, operation := c.Kind, strings.Fields(c.Kind)[0]
		if strings.Contains(kind, "Object") {
			kind += p.Versioning
		}
		for _, f := range catalogue(c, c.body) {
			if !p.meets(f, kind, operation) || slices.Contains(spare, c.Kind) && f.is(requestTimesOut|interrupts) {
				continue
			}
			all = append(all, trial{disturbance: disturbance{fault: f, at: c}, onEngines: f.is(main) && !p.tried[kind], name: fmt.Sprintf("%s: %s", c, f.Name)})
			if f.is(recovers) && !f.is(appliedLate|lastsTwoSeconds) && !p.tried[kind] {
				all = append(all, trial{disturbance: disturbance{fault: f, at: c, each: true}, name: fmt.Sprintf("%s: %s, each time", c, f.Name)})
			}
		}
		p.tried[kind], p.tried[operation] = true, true
	}
	return all
}

// meets reports whether a call meets the fault: the whole menu once for each kind of call, each of
// the many reasons of one error once for each operation, the main faults at every call.
func (p *runner) meets(f *Fault, kind, operation string) bool {
	return f.is(main) || !p.tried[kind] && (!f.isReason() || !p.tried[operation])
}

// cuts are the verdicts with another act run whole between two calls. Calls side by side are
// applied before it or after it: each alone, all but each, none, and at the end all.
func (p *runner) interleaved(b Concurrent) (all []trial) {
	for round := 1; round <= p.trace.rounds; round++ {
		calls := p.inRound(round)
		sets := map[string][]Call{"": nil}
		for _, c := range calls {
			if len(calls) > 1 {
				one, rest := []Call{c}, slices.DeleteFunc(slices.Clone(calls), c.is)
				sets[fmt.Sprint(one)], sets[fmt.Sprint(rest)] = one, rest
			}
		}
		if round == p.trace.rounds {
			sets[fmt.Sprint(calls)] = calls
		}
		for _, key := range slices.Sorted(maps.Keys(sets)) {
			at := round
			if len(sets[key]) == len(calls) && round == p.trace.rounds {
				at++ // the act has made its calls
			}
			v := trial{disturbance: disturbance{round: round, after: sets[key]}, concurrent: b.Operation.Name}
			v.name = fmt.Sprintf("%s in round %d after %v", b.Operation.Name, at, sets[key])
			all = append(all, v)
		}
	}
	for _, c := range p.trace.calls { // its answer is lost, and the other act comes before the repetition
		if writes.MatchString(c.Kind) || strings.HasPrefix(c.Kind, "DeleteObject") || strings.HasPrefix(c.Kind, "PutObject") {
			v := trial{disturbance: disturbance{fault: lost, at: c}, concurrent: b.Operation.Name}
			v.name = fmt.Sprintf("%s after a lost answer to %s", b.Operation.Name, c)
			all = append(all, v)
		}
	}
	return all
}

// helds are the verdicts with a request that is held until after each call.
func (p *runner) inFlight(b Concurrent) (all []trial) {
	for k := range p.trace.calls {
		all = append(all, trial{concurrent: b.Operation.Name, inFlightUntil: k + 1, name: fmt.Sprintf("%s is held until after call %d", b.Operation.Name, k+1)})
	}
	return all
}
