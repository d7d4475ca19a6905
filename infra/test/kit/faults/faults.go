// Package faults makes calls to AWS fail on purpose. A Transport is an HTTP client
// between SDK clients and an engine. It records every attempt and makes chosen ones
// fail like networks and services: refused, applied with the answer lost, throttled,
// stalled, cut off, garbled. Only tests import it.
//
//	broken := faults.Wrap(engines.Config.HTTPClient)
//	broken.Inject(faults.Rule{Operation: "PutItem", Call: 1, Attempt: 1, Fault: faults.LoseAnswer()})
//	engines.Config.HTTPClient = broken
package faults

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"signalbox.dev/infra/test/record"
)

// Fault happens to one attempt of a call. A fault that does not call apply leaves the
// engine untouched.
type Fault func(r *http.Request, apply Apply) (*http.Response, error)

// Apply sends an attempt to the engine and returns the engine's answer.
type Apply = func() (*http.Response, error)

// Rule contains a fault and selects the attempts that meet it.
type Rule struct {
	// Operation is AWS's name, such as "PutItem"; "" means every operation.
	Operation string
	// Call counts the calls of the operation from 1. Retries count as one call; 0 means
	// every call.
	Call int
	// Attempt counts the attempts of one call from 1; 0 means every attempt: the SDK's
	// retries do not help.
	Attempt int
	Fault   Fault
}

func (r Rule) meets(c Call) bool {
	return (r.Operation == "" || r.Operation == c.Operation) && (r.Call == 0 || r.Call == c.Number) && (r.Attempt == 0 || r.Attempt == c.Attempt)
}

// Call is one attempt of a call, as it was sent.
type Call struct {
	record.Request

	Number int  // number of the call for its operation, from 1
	Failed bool // it met a fault
	// Input is the JSON of a call to DynamoDB or KMS.
	Input map[string]any
}

// read describes a request and leaves it as it was.
func read(r *http.Request) (c Call, err error) {
	if c.Request, err = record.Read(r); err == nil && c.Service != "S3" {
		err = json.Unmarshal(c.Body, &c.Input)
	}
	return c, err
}

// Transport is an HTTP client for the SDK that fails by its rules. It may be used
// by several goroutines.
type Transport struct {
	next aws.HTTPClient

	mu    sync.Mutex
	rules []Rule
	calls []Call
}

// Wrap returns a transport before the client that sends the requests; nil means a new
// client of the SDK.
func Wrap(next aws.HTTPClient) *Transport {
	if next == nil {
		next = awshttp.NewBuildableClient()
	}
	return &Transport{next: next}
}

// Inject adds a rule. If several rules match an attempt, the first decides.
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
	apply := func() (*http.Response, error) { return t.next.Do(r) }
	if fault := t.record(call); fault != nil {
		return fault(r, apply)
	}
	return apply()
}

// record records the attempt and returns the fault it meets, if any.
func (t *Transport) record(c Call) Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Number = 1
	for _, earlier := range t.calls {
		if c.Invocation == earlier.Invocation {
			c.Number = earlier.Number
			break
		}
		if c.Operation == earlier.Operation {
			c.Number = max(c.Number, earlier.Number+1)
		}
	}
	rule := slices.IndexFunc(t.rules, func(r Rule) bool { return r.meets(c) })
	c.Failed = rule >= 0
	t.calls = append(t.calls, c)
	if !c.Failed {
		return nil
	}
	return t.rules[rule].Fault
}
