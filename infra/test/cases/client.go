package cases

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/record"
	"signalbox.dev/shared/calls"
)

// Call is a call to AWS, with all its attempts.
type Call struct {
	// Kind is the operation and the kinds of its items, such as "PutItem workspace#".
	Kind   string
	Number int // among the operation's calls of the kind, from 1
	Round  int // length of the chain of calls up to this one, which wait for each other

	body []byte
}

func (c Call) String() string { return fmt.Sprintf("%s %d", c.Kind, c.Number) }

// is reports whether both are the same call of an operation.
func (c Call) is(d Call) bool { return c.Kind == d.Kind && c.Number == d.Number }

type attempt struct {
	record.Request

	call *Call
}

// again returns a copy of the request r, with the body of the attempt.
func (a *attempt) again(ctx context.Context, r *http.Request) *http.Request {
	r = r.Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(a.Body))
	return r
}

// client is the HTTP client of one operation. It counts and inspects the calls, and lets a
// disturbance happen to them.
type client struct {
	env       *Environment
	operation *Operation
	lifetime  *lifetime
	trace     *trace // the calls without a disturbance, empty if they are not known
	disturbance

	mu       sync.Mutex
	byID     map[string]*Call // by the SDK's id of the invocation
	calls    []*Call
	attempts int
	deepest  int // round of the calls that were answered
	met      []failure
	metAt    time.Time     // when the first attempt met the fault
	begun    atomic.Bool   // the concurrent operation
	ran      chan struct{} // closed when it has run
	late     []func()      // attempts that are applied when their client has given up
	applied  int           // how many of the calls in after
	// Of the calls in the trace: closed when a call is made, and when it is answered.
	made, answers map[string]chan struct{}
}

// failure is an attempt that met a fault.
type failure struct {
	Call

	at     time.Time
	logged map[string]any // the error in the log, nil if that is not known
}

// disturbance is what happens to the calls of one operation.
type disturbance struct {
	fault           *Fault
	at              Call // the call that meets the fault
	always          bool // each attempt of this kind of call meets it from then on
	connectionsLost bool // the first attempt of each call of the first round loses its connection

	// concurrent runs once: when the calls in after are applied and the other calls of their
	// round are not sent yet. With a fault it runs after the attempt that meets it.
	concurrent func()
	round      int
	after      []Call

	maxAttempts int // for which there is time, 0 for any
	// beforeCall returns false if the operation's time is up.
	beforeCall func(context.Context, Call) bool
	// afterCall is called with each call's number after its answer.
	afterCall func(int)
	// delay is a pause before and after each call.
	delay func(c Call, answer bool) time.Duration
}

// none reports whether nothing disturbs the operation.
func (d *disturbance) none() bool {
	return d.fault == nil && d.concurrent == nil && d.afterCall == nil && d.delay == nil && !d.connectionsLost && d.maxAttempts == 0
}

// lifetime is the context of an operation. Its time-out, a fault or an interruption ends it: what
// comes first is its error.
type lifetime struct {
	context.Context

	end context.CancelCauseFunc
}

func newLifetime(limit time.Duration) *lifetime {
	base, cancel := context.WithTimeout(context.Background(), limit)
	ctx, end := context.WithCancelCause(base)
	context.AfterFunc(ctx, cancel)
	return &lifetime{ctx, end}
}

// Err implements context.Context.
func (l *lifetime) Err() error { return context.Cause(l.Context) }

// Value implements context.Context. It hides the inner context, whose error is another one.
func (*lifetime) Value(any) any { return nil }

// run runs an operation with a disturbance. t is its trace without one, nil if that is not known.
func (env *Environment) run(op *Operation, t *trace, d disturbance) (Result, *client) {
	limit := cmp.Or(op.Limit, 10*time.Second)
	if env.OnEngines() {
		limit = 2 * time.Minute // a busy machine must not end it
	}
	c := &client{
		env: env, operation: op, trace: cmp.Or(t, &trace{}), lifetime: newLifetime(limit), disturbance: d,
		ran: make(chan struct{}), byID: map[string]*Call{}, made: map[string]chan struct{}{}, answers: map[string]chan struct{}{},
	}
	defer c.lifetime.end(context.Canceled)
	for _, call := range c.trace.calls {
		c.made[call.String()], c.answers[call.String()] = make(chan struct{}), make(chan struct{})
	}
	began := time.Now()
	r := op.Run(c.lifetime, c)
	r.Ended = time.Now()
	if r.Began.IsZero() {
		r.Began = began
	}
	for _, apply := range c.late {
		apply()
	}
	return r, c
}

// Do implements aws.HTTPClient.
func (c *client) Do(r *http.Request) (*http.Response, error) {
	if _, ok := r.Context().Deadline(); !ok {
		return nil, errors.New("a call without a deadline")
	}
	q, err := record.Read(r)
	if err != nil {
		return nil, err
	}
	a := attempt{Request: q}
	if isTooMany := c.arrives(&a); isTooMany {
		return c.timeIsUp(r)
	}
	if c.delay != nil {
		_ = calls.Wait(r.Context(), c.delay(*a.call, false))
	}
	if c.beforeCall != nil && !c.beforeCall(r.Context(), *a.call) {
		return c.timeIsUp(r)
	}
	fault := c.faultOf(a)
	if !c.beforeSending(r.Context(), a) {
		return nil, r.Context().Err()
	}
	apply := func() (*http.Response, error) { return c.env.send(a.again(r.Context(), r)) }
	if fault != nil {
		return c.fail(r, a, fault, apply)
	}
	response, err := apply()
	if c.delay != nil {
		_ = calls.Wait(r.Context(), c.delay(*a.call, true))
	}
	c.answered(r.Context(), a)
	return response, err
}

// timeIsUp ends the operation.
func (c *client) timeIsUp(r *http.Request) (*http.Response, error) {
	c.lifetime.end(context.DeadlineExceeded)
	<-r.Context().Done() // it ends a little later
	return nil, r.Context().Err()
}

// arrives finds the call of an attempt, and inspects it. It reports whether the
// operation has made more attempts than it may.
func (c *client) arrives(a *attempt) (isTooMany bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind, id := kindOf(a.Request), a.Invocation
	c.attempts++
	if a.call = c.byID[id]; a.call == nil {
		a.call = &Call{Kind: kind, Number: 1, Round: c.deepest + 1, body: a.Body}
		for _, other := range c.calls {
			if other.Kind == kind {
				a.call.Number++
			}
		}
		c.byID[id], c.calls = a.call, append(c.calls, a.call)
		c.inspect(a)
		if made := c.made[a.call.String()]; made != nil {
			close(made)
		}
	}
	return c.maxAttempts > 0 && c.attempts > c.maxAttempts
}

var (
	reads      = regexp.MustCompile(`^(GetItem|Query|Scan|BatchGetItem)`)
	itemWrites = regexp.MustCompile(`^(PutItem|UpdateItem|DeleteItem|TransactWriteItems)`)
	writes     = regexp.MustCompile(itemWrites.String() + `|^(PutObject|DeleteObject)`)
	keys       = regexp.MustCompile(`":?pk":\{"S":"(\w+#)`)
)

// kindOf names the operation and the kinds of its items.
func kindOf(q record.Request) string {
	var kinds []string
	for _, found := range keys.FindAllSubmatch(q.Body, -1) {
		kinds = append(kinds, string(found[1]))
	}
	return strings.TrimSpace(q.Operation + " " + strings.Join(slices.Compact(kinds), "+"))
}

// inspect requires that no call contains a secret, that no read may be stale, that each write of
// a request is conditional, and that no listing goes beyond its file.
func (c *client) inspect(a *attempt) {
	env, sent, query := c.env, a.URL.String()+string(a.Body), a.URL.Query()
	if found := kit.LeaksIn([]byte(sent)); len(found) > 0 {
		env.Broken("calls", "%s contains %v", a.call, found)
	}
	if reads.MatchString(a.call.Kind) && !strings.Contains(sent, `"ConsistentRead":true`) {
		env.Broken("calls", "%s is not strongly consistent", a.call)
	}
	conditions := strings.Count(sent, `"ConditionExpression":`)
	items := max(1, strings.Count(sent, `"Put":`)+strings.Count(sent, `"Update":`)+strings.Count(sent, `"Delete":`)+strings.Count(sent, `"ConditionCheck":`))
	if !c.operation.Unconditional && (itemWrites.MatchString(a.call.Kind) && conditions != items || a.call.Kind == "DeleteObject" && a.Header.Get("If-Match") != "*") {
		env.Broken("calls", "%s is not conditional", a.call)
	}
	if from, prefix := query.Get("key-marker"), query.Get("prefix"); from != "" && from != prefix && !strings.HasSuffix(prefix, "/") {
		env.Broken("calls", "%s lists what follows %s", a.call, from)
	}
}

// faultOf is the fault that an attempt meets.
func (c *client) faultOf(a attempt) *Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.connectionsLost && a.call.Round == 1 && a.Attempt == 1 && a.call.Number == 1 {
		return gone
	}
	f := c.fault
	switch {
	case f == nil || a.call.Kind != c.at.Kind || a.call.Number < c.at.Number:
		return nil
	case c.metAt.IsZero():
		c.metAt = c.env.Now()
		return f
	case f.lastsTwoSeconds && c.env.Now().Sub(c.metAt) < 2*time.Second:
		return f
	case c.always:
		if len(c.met) > manyAttempts {
			c.lifetime.end(context.DeadlineExceeded) // a fault that stays ends by a count
		}
		return f
	}
	return nil
}

// manyAttempts is how many attempts meet a fault that stays, before the time of the operation is up.
const manyAttempts = 8

// beforeSending holds a call of the round in which the concurrent operation runs. It returns false
// if the operation has ended.
func (c *client) beforeSending(ctx context.Context, a attempt) bool {
	if c.concurrent == nil || c.fault != nil || a.Attempt > 1 || slices.ContainsFunc(c.after, a.call.is) ||
		!slices.ContainsFunc(c.trace.inRound(c.round), a.call.is) {
		return true
	}
	if len(c.after) == 0 {
		c.runConcurrent()
	}
	select {
	case <-c.ran:
		return true
	case <-ctx.Done():
		return false
	}
}

// await waits until the siblings of a call are made or answered.
func (c *client) await(ctx context.Context, a attempt, when map[string]chan struct{}) {
	for _, sibling := range c.trace.siblings(*a.call) {
		c.mu.Lock()
		event := when[sibling.String()]
		c.mu.Unlock()
		if event == nil {
			continue
		}
		select {
		case <-event:
		case <-ctx.Done():
		}
	}
}

// runConcurrent runs the concurrent operation once. Nobody may wait for a mutex meanwhile: a bubble's time
// would stop.
func (c *client) runConcurrent() {
	if c.begun.CompareAndSwap(false, true) {
		c.concurrent()
		close(c.ran)
	}
	<-c.ran
}

// answered notes a call's answer.
func (c *client) answered(ctx context.Context, a attempt) {
	if c.env.OnEngines() && c.none() {
		c.await(ctx, a, c.made) // or the round of a sibling depends on the machine
	}
	c.mu.Lock()
	if answer := c.answers[a.call.String()]; answer != nil {
		close(answer)
		delete(c.answers, a.call.String())
	}
	c.deepest = max(c.deepest, a.call.Round)
	if slices.ContainsFunc(c.after, a.call.is) {
		c.applied++
	}
	done, number := c.applied, len(c.calls)
	c.mu.Unlock()
	if c.concurrent != nil && c.fault == nil && len(c.after) > 0 && done == len(c.after) {
		c.runConcurrent()
	}
	if c.afterCall != nil {
		c.afterCall(number)
	}
}

// fail lets the fault happen to an attempt.
func (c *client) fail(r *http.Request, a attempt, f *Fault, apply func() (*http.Response, error)) (*http.Response, error) {
	if f.appliedLate {
		c.mu.Lock()
		c.late = append(c.late, func() {
			if response, err := c.env.send(a.again(context.Background(), r)); err == nil {
				_ = response.Body.Close()
			}
		})
		c.mu.Unlock()
	}
	response, err := f.do(a.again(r.Context(), r), apply)
	if c.concurrent != nil {
		c.runConcurrent()
	}
	logged := f.logged(a, r, response, err)
	switch {
	case f.attemptTimesOut && !c.env.OnEngines():
		_ = calls.Wait(r.Context(), silence)
	case f.requestTimesOut:
		c.await(r.Context(), a, c.answers)
		c.lifetime.end(context.DeadlineExceeded)
	case f.interrupts:
		c.await(r.Context(), a, c.answers)
		c.lifetime.end(context.Canceled)
	}
	if c.lifetime.Err() != nil {
		<-r.Context().Done() // it ends a little later
		response, err = nil, r.Context().Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.Usable {
		c.deepest = max(c.deepest, a.call.Round)
	}
	c.met = append(c.met, failure{*a.call, c.env.Now(), logged})
	return response, err
}
