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

	"github.com/aws/aws-sdk-go-v2/aws"

	"signalbox.dev/infra/test/kit"
)

// Call is a call to AWS, with all its attempts.
type Call struct {
	// Kind is the operation and the kinds of its items, such as "PutItem workspace#".
	Kind   string
	Number int // among the act's calls of the kind, from 1
	Round  int // length of the chain of calls up to this one

	body []byte
}

func (c Call) String() string { return fmt.Sprintf("%s %d", c.Kind, c.Number) }

// is reports whether both are the same call of an act.
func (c Call) is(d Call) bool { return c.Kind == d.Kind && c.Number == d.Number }

type attempt struct {
	call   *Call
	number int
	body   []byte
}

// client is the HTTP client of one act. It counts and inspects the calls, and lets a disturbance
// happen to them.
type client struct {
	world     *Environment
	operation *Operation
	life      *life
	trace     *trace // the calls without a disturbance, nil if they are not known
	disturbance

	mu       sync.Mutex
	byID     map[string]*Call // by the SDK's id of the invocation
	calls    []*Call
	attempts int
	deepest  int // round of the calls that were answered
	met      []failure
	begun    atomic.Bool   // beside
	ran      chan struct{} // closed when beside has run
	later    []func()      // attempts that are applied when their client has given up
	applied  []Call
	// Of the planned calls: closed when a call is made, and when it is answered.
	made, answers map[string]chan struct{}
}

// failure is an attempt that met a fault.
type failure struct {
	Call

	fault  *Fault
	at     time.Time
	logged map[string]any // the error in the log, nil if that is not known
}

// disturbance is what happens to the calls of one act.
type disturbance struct {
	fault  *Fault
	at     Call // the call that meets the fault
	each   bool // each attempt of this kind of call meets it from then on
	frozen bool // the first attempt of each call of the first round loses its connection

	// beside runs once: when the calls in after are applied and the other calls of their
	// round are not sent yet. With a fault it runs after the attempt that meets it.
	concurrent func()
	round      int
	after      []Call

	most int // the number of attempts for which there is time, 0 for any
	// before is called before each call. It returns false if the act's time is up.
	before func(context.Context, Call) bool
	// every is called with each call's number after its answer.
	every func(int)
	// delay is a pause before and after each call.
	delay func(c Call, answer bool) time.Duration
}

// Do implements aws.HTTPClient.
func (c *client) Do(r *http.Request) (*http.Response, error) {
	if _, ok := r.Context().Deadline(); !ok {
		return nil, errors.New("a call without a deadline")
	}
	a := attempt{}
	if r.Body != nil {
		var err error
		if a.body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("reading a request: %w", err)
		}
	}
	if isTooMany := c.arrives(r, &a); isTooMany {
		return c.timeIsUp(r)
	}
	if c.delay != nil {
		sleep(r.Context(), c.delay(*a.call, false))
	}
	if c.before != nil && !c.before(r.Context(), *a.call) {
		return c.timeIsUp(r)
	}
	fault := c.faultOf(a)
	if !c.beforeSending(r.Context(), a) {
		return nil, r.Context().Err()
	}
	apply := func() (*http.Response, error) {
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(bytes.NewReader(a.body))
		return c.world.send(again)
	}
	if fault != nil {
		return c.fail(r, a, fault, apply)
	}
	response, err := apply()
	if c.delay != nil {
		sleep(r.Context(), c.delay(*a.call, true))
	}
	c.answered(r.Context(), a)
	return response, err
}

// timeIsUp ends the act.
func (c *client) timeIsUp(r *http.Request) (*http.Response, error) {
	c.life.end(context.DeadlineExceeded)
	<-r.Context().Done() // it ends a little later
	return nil, r.Context().Err()
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// arrives finds the call of an attempt, and inspects it. It reports whether the act has made
// more attempts than it may.
func (c *client) arrives(r *http.Request, a *attempt) (isTooMany bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind, id := kindOf(r, a.body), r.Header.Get("Amz-Sdk-Invocation-Id")
	c.attempts++
	if a.call = c.byID[id]; a.call == nil {
		a.call = &Call{Kind: kind, Number: 1, Round: c.deepest + 1, body: a.body}
		for _, other := range c.calls {
			if other.Kind == kind {
				a.call.Number++
			}
		}
		c.byID[id], c.calls = a.call, append(c.calls, a.call)
		c.inspect(r, a)
		if made := c.made[a.call.String()]; made != nil {
			close(made)
		}
	}
	a.number = 1
	_, _ = fmt.Sscanf(r.Header.Get("Amz-Sdk-Request"), "attempt=%d", &a.number)
	return c.most > 0 && c.attempts > c.most
}

var (
	reads  = regexp.MustCompile(`^(GetItem|Query|Scan|BatchGetItem)`)
	writes = regexp.MustCompile(`^(PutItem|UpdateItem|DeleteItem|TransactWriteItems)`)
	keys   = regexp.MustCompile(`":?pk":\{"S":"(\w+#)`)
)

// kindOf names the operation and the kinds of its items.
func kindOf(r *http.Request, body []byte) string {
	operation, asked := r.Method, r.URL.Query()
	_, target, called := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch {
	case called:
		operation = target
	case asked.Has("versions"):
		operation = "ListObjectVersions"
	case asked.Has("delete"):
		operation = "DeleteObjects"
	case asked.Has("uploads"):
		operation = "ListMultipartUploads"
	default:
		operation = cmp.Or(asked.Get("x-id"), operation)
	}
	var kinds []string
	for _, found := range keys.FindAllSubmatch(body, -1) {
		kinds = append(kinds, string(found[1]))
	}
	return strings.TrimSpace(operation + " " + strings.Join(slices.Compact(kinds), "+"))
}

// inspect requires that no call contains a secret, that no read may be stale, that each write of
// a request is conditional, and that no listing goes beyond its file.
func (c *client) inspect(r *http.Request, a *attempt) {
	env, sent, query := c.world, r.URL.String()+string(a.body), r.URL.Query()
	if found := kit.LeaksIn([]byte(sent)); len(found) > 0 {
		env.Broken("calls", "%s contains %v", a.call, found)
	}
	if reads.MatchString(a.call.Kind) && !strings.Contains(sent, `"ConsistentRead":true`) {
		env.Broken("calls", "%s is not strongly consistent", a.call)
	}
	conditions := strings.Count(sent, `"ConditionExpression":`)
	items := max(1, strings.Count(sent, `"Put":`)+strings.Count(sent, `"Update":`)+strings.Count(sent, `"Delete":`)+strings.Count(sent, `"ConditionCheck":`))
	if !c.operation.Unconditional && (writes.MatchString(a.call.Kind) && conditions != items || a.call.Kind == "DeleteObject" && r.Header.Get("If-Match") != "*") {
		env.Broken("calls", "%s is not conditional", a.call)
	}
	if from := query.Get("key-marker"); from != "" && from != query.Get("prefix") {
		env.Broken("calls", "%s lists what follows %s", a.call, from)
	}
}

// faultOf is the fault that an attempt meets.
func (c *client) faultOf(a attempt) *Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen && a.call.Round == 1 && a.number == 1 && a.call.Number == 1 {
		return gone
	}
	f := c.fault
	switch {
	case f == nil || a.call.Kind != c.at.Kind || a.call.Number < c.at.Number:
		return nil
	case len(c.met) == 0:
		return f
	case f.is(lastsTwoSeconds) && c.world.Now().Sub(c.met[0].at) < 2*time.Second:
		return f
	case c.each:
		if len(c.met) > manyAttempts {
			c.life.end(context.DeadlineExceeded) // a fault that stays ends by a count
		}
		return f
	}
	return nil
}

// manyAttempts is how many attempts meet a fault that stays, before the time of the act is up.
const manyAttempts = 8

// beforeSending holds a call of the round in which another act runs. It returns false if the act
// has ended.
func (c *client) beforeSending(ctx context.Context, a attempt) bool {
	if c.concurrent == nil || c.fault != nil || !c.trace.has(c.round, *a.call) || a.number > 1 {
		return true
	}
	if slices.ContainsFunc(c.after, a.call.is) {
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

// runBeside runs the other act once. Nobody may wait for a mutex meanwhile: a bubble's time
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
	if c.world.OnEngines() && c.quiet() {
		c.await(ctx, a, c.made) // or the round of a sibling depends on the machine
	}
	c.mu.Lock()
	if answer := c.answers[a.call.String()]; answer != nil {
		close(answer)
		delete(c.answers, a.call.String())
	}
	c.deepest = max(c.deepest, a.call.Round)
	for _, call := range c.after {
		if call.is(*a.call) {
			c.applied = append(c.applied, call)
		}
	}
	done := len(c.applied)
	number := len(c.calls)
	c.mu.Unlock()
	if c.concurrent != nil && c.fault == nil && len(c.after) > 0 && done == len(c.after) {
		c.runConcurrent()
	}
	if c.every != nil {
		c.every(number)
	}
}

// fail lets the fault happen to an attempt.
func (c *client) fail(r *http.Request, a attempt, f *Fault, apply func() (*http.Response, error)) (*http.Response, error) {
	if f.is(appliedLate) {
		c.mu.Lock()
		c.later = append(c.later, func() {
			again := r.Clone(context.Background())
			again.Body = io.NopCloser(bytes.NewReader(a.body))
			if response, err := c.world.send(again); err == nil {
				_ = response.Body.Close()
			}
		})
		c.mu.Unlock()
	}
	request := r.Clone(r.Context())
	request.Body = io.NopCloser(bytes.NewReader(a.body))
	response, err := f.do(request, apply)
	if c.concurrent != nil {
		c.runConcurrent()
	}
	logged := f.logged(a, r, response, err)
	switch {
	case f.is(attemptTimesOut) && !c.world.OnEngines():
		sleep(r.Context(), silence)
	case f.is(requestTimesOut):
		c.await(r.Context(), a, c.answers)
		c.life.end(context.DeadlineExceeded)
	case f.is(interrupts):
		c.await(r.Context(), a, c.answers)
		c.life.end(context.Canceled)
	}
	if c.life.Err() != nil {
		<-r.Context().Done() // it ends a little later
		response, err = nil, r.Context().Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.is(usable) {
		c.deepest = max(c.deepest, a.call.Round)
	}
	c.met = append(c.met, failure{*a.call, f, c.world.Now(), logged})
	return response, err
}

var _ aws.HTTPClient = (*client)(nil)
