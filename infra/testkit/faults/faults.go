// Package faults makes calls to AWS fail on purpose. A Transport is an HTTP client
// between SDK clients and an engine. It records every attempt and makes chosen
// ones fail as networks and services do: refused, applied with the answer lost,
// throttled, stalled, cut off, garbled. Only tests import it.
//
//	broken := faults.Wrap(engines.Config.HTTPClient)
//	broken.Inject(faults.Rule{Operation: "PutItem", Call: 1, Attempt: 1, Fault: faults.LoseAnswer()})
//	engines.Config.HTTPClient = broken
package faults

import (
	"net/http"
	"slices"
	"sync"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// Client sends requests; the SDK's HTTP clients and http.Client do.
type Client interface {
	Do(*http.Request) (*http.Response, error)
}

// Fault happens to one attempt of a call. A fault that does not call apply leaves the
// engine untouched.
type Fault func(r *http.Request, apply Apply) (*http.Response, error)

// Apply sends an attempt to the engine and returns the engine's answer.
type Apply = func() (*http.Response, error)

// Rule contains a fault and which attempts meet it.
type Rule struct {
	// Operation is AWS's name, such as "PutItem"; "" means every operation.
	Operation string
	// Kind is the kind of item, as in Call; "" means every kind.
	Kind string
	// Call counts the calls of the operation from 1, or of the kind if one is given.
	// Retries count as one call; 0 means every call.
	Call int
	// Onwards means the calls after that one as well.
	Onwards bool
	// Attempt counts the attempts of one call from 1; 0 means every attempt, and then
	// the SDK's retries do not help.
	Attempt int
	Fault   Fault
}

func (r Rule) meets(c Call) bool {
	number := c.Number
	if r.Kind != "" {
		number = c.OfKind
	}
	return (r.Operation == "" || r.Operation == c.Operation) &&
		(r.Kind == "" || r.Kind == c.Kind) &&
		(r.Call == 0 || r.Call == number || r.Onwards && r.Call < number) &&
		(r.Attempt == 0 || r.Attempt == c.Attempt)
}

// Transport is an HTTP client for the SDK that fails by its rules. It may be used
// by several goroutines.
type Transport struct {
	next Client

	mu    sync.Mutex
	rules []Rule
	calls []Call
}

// Wrap returns a transport before the client that sends the requests; nil means a
// new one of the SDK's.
func Wrap(next Client) *Transport {
	if next == nil {
		next = awshttp.NewBuildableClient()
	}
	return &Transport{next: next}
}

// Inject adds a rule. Where several meet an attempt, the first decides.
func (t *Transport) Inject(r Rule) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rules = append(t.rules, r)
}

// Heal removes all rules and the calls recorded so far: counting starts again.
func (t *Transport) Heal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rules, t.calls = nil, nil
}

// Calls returns the attempts made so far, in the order in which they were sent.
func (t *Transport) Calls() []Call {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.calls)
}

// Do implements aws.HTTPClient.
func (t *Transport) Do(r *http.Request) (*http.Response, error) {
	call, err := read(r)
	if err != nil {
		return nil, err
	}
	fault := t.record(call)
	apply := func() (*http.Response, error) { return t.next.Do(r) }
	if fault == nil {
		return apply()
	}
	return fault(r, apply)
}

// record records the attempt and returns the fault it meets, if any.
func (t *Transport) record(c Call) Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Number = t.number(c, func(Call) bool { return true })
	c.OfKind = t.number(c, func(other Call) bool { return other.Kind == c.Kind })
	rule := slices.IndexFunc(t.rules, func(r Rule) bool { return r.meets(c) })
	c.Failed = rule >= 0
	t.calls = append(t.calls, c)
	if !c.Failed {
		return nil
	}
	return t.rules[rule].Fault
}

// number counts the different calls of the same operation up to this one, if they are
// alike.
func (t *Transport) number(c Call, alike func(Call) bool) int {
	seen := map[string]bool{c.invocation: true}
	for _, earlier := range t.calls {
		if earlier.invocation == c.invocation {
			break
		}
		if earlier.Operation == c.Operation && alike(earlier) {
			seen[earlier.invocation] = true
		}
	}
	return len(seen)
}
