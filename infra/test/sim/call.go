package sim

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing/iotest"
	"time"

	"signalbox.dev/infra/test/awsmodel"
	"signalbox.dev/infra/test/kit"
)

// call is one attempt of a call, from when it is made until it is answered.
type call struct {
	actor   *actor
	name    string // the operation and its item
	number  int    // among the actor's calls of this name
	label   awsmodel.Label
	touches []awsmodel.Touch

	request *http.Request
	body    []byte
	answer  chan reply

	serial   int           // among the actor's calls
	depth    int           // length of the chain of the actor's calls up to this one
	born     int           // number of steps when it was made
	late     bool          // the client has given up; the call is still to be applied
	patience time.Duration // time in which it may be repeated after its answer
}

// reply is the client's response, and the fault that delays it.
type reply struct {
	response *http.Response
	err      error
	fault    *Fault
}

func (c *call) String() string {
	late := map[bool]string{true: ", late"}[c.late]
	return c.actor.Name + " " + c.name + " " + strconv.Itoa(c.number) + late
}

// order sorts the waiting calls. For one actor the least deep call comes first. So a lone
// request without a fault gets its answers as if each call took one unit of time, and its
// greatest depth is exact.
func (c *call) order() string {
	return fmt.Sprintf("%03d %t %05d %s %05d", c.actor.index, c.late, c.depth, c.name, c.number)
}

// Do implements aws.HTTPClient: the call waits for the scheduler.
func (a *actor) Do(r *http.Request) (*http.Response, error) {
	c := &call{actor: a, request: r, answer: make(chan reply, 1)}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, fmt.Errorf("reading a request: %w", err)
		}
		c.body = body
	}
	if a.run == nil { // before the run, or made by the judge
		return c.send(), nil
	}
	if _, ok := r.Context().Deadline(); !ok {
		return nil, errors.New("a call without a deadline")
	}
	a.run.park(c)
	select {
	case got := <-c.answer:
		defer c.ends(got)
		return c.wait(got)
	case <-r.Context().Done():
		a.run.remove(c)
		return nil, r.Context().Err()
	}
}

func (r *run) park(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := c.actor
	c.label, c.touches = awsmodel.Footprint(c.request, c.body)
	c.name = strings.TrimSpace(c.label.Operation + " " + a.alias(c.label.Item))
	a.made[c.name]++
	a.calls++
	c.number, c.serial, c.depth, c.born = a.made[c.name], a.calls, a.deepest+1, len(r.steps)
	r.waiting = append(r.waiting, c)
	attempt := strings.TrimPrefix(c.request.Header.Get("Amz-Sdk-Request"), "attempt=")[:1]
	if before, ok := a.last[c.name]; ok && before.at.Equal(time.Now()) && attempt > "1" && (!before.lost || attempt > "2") {
		r.problem("%s: it is repeated without a pause", c)
	}
	r.inspect(c)
	r.signal()
}

// inspect requires that no call contains a secret, that no read may be stale, that each
// write of a request is conditional, and that no listing goes beyond its file.
func (w *World) inspect(c *call) {
	sent, query := c.request.URL.String()+string(c.body), c.request.URL.Query()
	if found := kit.LeaksIn([]byte(sent)); len(found) > 0 {
		w.problem("%s contains %v: %s", c, found, sent)
	}
	if c.label.Service == "DynamoDB" && reads.MatchString(c.label.Operation) && !strings.Contains(sent, `"ConsistentRead":true`) {
		w.problem("%s is not strongly consistent: %s", c, sent)
	}
	items, conditions := strings.Count(c.label.Item, " + ")+1, strings.Count(sent, `"ConditionExpression":`)
	_, act := c.actor.work.(*performance)
	if !act && (writes.MatchString(c.label.Operation) && conditions != items || c.label.Operation == "DeleteObject" && c.request.Header.Get("If-Match") != "*") {
		w.problem("%s is not conditional: %s", c, sent)
	}
	if from := query.Get("key-marker"); from != "" && from != query.Get("prefix") {
		w.problem("%s lists what follows %s", c, from)
	}
}

var (
	reads  = regexp.MustCompile(`GetItem$|^Query$|^Scan$`)
	writes = regexp.MustCompile(`^(PutItem|UpdateItem|DeleteItem|TransactWriteItems)$`)
)

// staying is the fault that the call must meet.
func (c *call) staying() *Fault {
	a := c.actor
	switch {
	case c.late:
		return nil
	case a.world.Frozen && c.born == 0 && c.number == 1 && a.repeats == nil:
		return gone
	case a.most > 0 && c.serial > a.most:
		return timeIsUp
	}
	if f := a.stays[c.name]; f != nil && (f.until.IsZero() || time.Now().Before(f.until)) {
		return f
	}
	return nil
}

// apply executes the chosen alternative, and returns its text.
func (r *run) apply(a alternative) string {
	c := a.call
	if c.late {
		return c.name + " is applied only now: " + outcome(c.send())
	}
	if a.fault == nil {
		return c.name + " → " + c.succeed()
	}
	if a.added {
		r.budget--
		c.actor.begins(a.fault, c.name)
	}
	if a.fault.is(appliedLate) {
		r.applyLater(c)
	}
	return c.name + " → FAULT: " + a.fault.Name + c.fail(a.fault)
}

// succeed answers the call without a fault, and describes the response. The response may
// still be an error.
func (c *call) succeed() string {
	response := c.send()
	text := outcome(response)
	// After any error except a failed condition the code may try again.
	if response.StatusCode >= http.StatusBadRequest && !strings.Contains(text, "ConditionalCheckFailed") {
		c.patience = pause
	}
	ok := c.actor.ok
	ok[c.name] = response.StatusCode < http.StatusInternalServerError
	record, read := strings.CutPrefix(c.name, "GetItem ")
	for name := range ok { // a record shows whether its transaction was applied
		if read && strings.HasPrefix(name, "TransactWriteItems ") && strings.HasSuffix(name, " + "+record) {
			ok[name] = true
		}
	}
	c.reply(reply{response: response})
	return text
}

// begins notes a fault that the repetitions of the call meet too.
func (a *actor) begins(f *Fault, call string) {
	switch {
	case f.Stays:
		a.stays[call] = f
	case f.is(lastsTwoSeconds):
		again := *f
		again.Stays, again.until = true, time.Now().Add(2*time.Second)
		a.stays[call] = &again
	}
}

// applyLater adds a call that is applied after its client has given up.
func (r *run) applyLater(c *call) {
	ghost := *c
	ghost.late, ghost.born, ghost.patience, ghost.answer = true, len(r.steps), 0, make(chan reply, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, &ghost)
}

// fail makes the fault happen to the call, and describes the response, if there is one.
func (c *call) fail(f *Fault) (text string) {
	c.actor.ok[c.name] = f.is(usable)
	c.patience = pause
	if f.is(attemptTimesOut) {
		c.patience += silence
	}
	request := c.request.Clone(c.request.Context())
	request.Body = io.NopCloser(bytes.NewReader(c.body))
	response, err := f.do(request, func() (*http.Response, error) { return c.send(), nil })
	got := reply{response, err, f}
	c.actor.met = append(c.actor.met, met{c.name, f, got.logged(c)})
	if response != nil {
		text = ": " + outcome(response)
	}
	c.reply(got)
	return text
}

func (c *call) reply(got reply) {
	c.actor.run.mu.Lock()
	c.actor.deepest = max(c.actor.deepest, c.depth)
	c.actor.run.mu.Unlock()
	c.answer <- got
}

// wait returns the answer at its time.
func (c *call) wait(got reply) (*http.Response, error) {
	ctx := c.request.Context()
	var timeOut <-chan time.Time
	switch {
	case got.fault.is(attemptTimesOut):
		timeOut = time.After(silence)
	case !got.fault.is(requestTimesOut):
		return got.response, got.err
	}
	select {
	case <-timeOut:
		return got.response, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ends notes that a fault ended the call.
func (c *call) ends(got reply) {
	c.actor.run.mu.Lock()
	defer c.actor.run.mu.Unlock()
	delete(c.actor.last, c.name)
	if got.fault != nil && !got.fault.is(usable) {
		c.actor.last[c.name] = failed{time.Now(), got.err != nil && !errors.Is(got.err, os.ErrDeadlineExceeded)}
	}
}

func (c *call) send() *http.Response {
	w := c.actor.world
	w.applying.Lock()
	defer w.applying.Unlock()
	request := c.request.Clone(context.Background())
	request.Body = io.NopCloser(bytes.NewReader(c.body))
	if query := request.URL.Query(); w.Page > 0 && query.Has("versions") {
		query.Set("max-keys", strconv.Itoa(w.Page))
		request.URL.RawQuery = query.Encode()
	}
	response := w.model.Do(request, c.body)
	response.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	response.Request = c.request
	return response
}

// logged is the reply's error in the log, by the contract: AWS's code, status and
// request id, or the host and a word for a failure of the network.
func (r reply) logged(c *call) map[string]any {
	as := map[string]any{"operation": c.label.Operation}
	switch {
	case r.fault.is(requestTimesOut):
		as["code"] = "deadline"
	case r.response == nil:
		as["code"], as["host"] = "connection", c.request.URL.Host
		if errors.Is(r.err, os.ErrDeadlineExceeded) {
			as["code"] = "timeout"
		}
	default:
		body := peek(r.response)
		found := failure.FindSubmatch(body)
		whole := json.Valid(body) || bytes.HasSuffix(body, []byte("</Error>"))
		if r.response.StatusCode < http.StatusBadRequest || found == nil || !whole {
			return nil
		}
		as["code"], as["status"] = string(append(found[1], found[2]...)), float64(r.response.StatusCode)
		as["aws_request_id"] = cmp.Or(r.response.Header.Get("X-Amzn-Requestid"), r.response.Header.Get("X-Amz-Request-Id"))
	}
	return as
}

var (
	// failure finds the code of a whole response, not those of a transaction's items.
	failure = regexp.MustCompile(`"__type":"[^"]*?([A-Za-z]+)"|<Code>([A-Za-z]+)<`)
	// code is an error's code in DynamoDB's and KMS's JSON or in S3's XML.
	code = regexp.MustCompile(`(?:"Code":"|<Code>|"__type":"[^"]*?)([A-Za-z]+)["<]`)
)

// peek reads the body of a response, and leaves the response as it was.
func peek(response *http.Response) []byte {
	body, err := io.ReadAll(response.Body) // from memory; the error is that of a cut answer
	response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), iotest.ErrReader(cmp.Or(err, io.EOF))))
	return body
}

// outcome describes a response for the trace, and leaves it as it was.
func outcome(response *http.Response) string {
	body := peek(response)
	if response.StatusCode < http.StatusBadRequest && !bytes.Contains(body, []byte("<Error>")) {
		return "ok"
	}
	var words []string
	for _, found := range code.FindAllSubmatch(body, -1) {
		words = append(words, string(found[1]))
	}
	return fmt.Sprint(response.StatusCode, " ", strings.Join(words, " "))
}
