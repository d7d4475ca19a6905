package functest

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/boot"
)

// Function is one instance of the function, with faults of its own. Like one of
// Lambda's it serves one request at a time.
type Instance struct {
	Faults *faults.Transport

	handler lambda.Handler
	time    *manualDeadline
	log     bytes.Buffer

	mu   sync.Mutex
	errs []error
}

// Function starts an instance.
func (s *Env) Instance() *Instance {
	f := &Instance{Faults: faults.Wrap(steady{s.Engines.Config.HTTPClient})}
	env := boot.NewEnvironment(s.config(f.Faults), slog.New(slog.NewJSONHandler(&f.log, nil)), s.variables)
	env.AWS.Retryer = impatient
	keys, log, op := s.assemble(env)
	f.handler = api.Handler(recordingVerifier{keys, f}, log, f.recorded(op))
	return f
}

// impatient is the retry policy of functions without its pauses.
func impatient() aws.Retryer {
	return retry.AddWithMaxBackoffDelay(boot.Retryer(), time.Millisecond)
}

// Invoke plays the event and checks what every answer owes.
func (f *Instance) Invoke(t testing.TB, e Event) Answer {
	t.Helper()
	return f.play(t, e.payload(), e.RequestID, e.Body)
}

// play plays a proxy event that has this id and body.
func (f *Instance) play(t testing.TB, event []byte, requestID, body string) Answer {
	t.Helper()
	f.log.Reset()
	f.errs = nil
	before := len(f.Faults.Calls())
	f.time = newManualDeadline(t.Context())
	payload, err := f.handler.Invoke(f.time, event)
	if err != nil {
		t.Fatalf("the function returned an error: %v", err)
	}
	answer := Answer{payload: payload, RequestID: requestID, Calls: f.Faults.Calls()[before:]}
	answer.read(t, f.log.Bytes())
	answer.checkEnvelope(t)
	checkCalls(t, answer.Calls)
	checkLeaks(t, body, answer, f.errs)
	return answer
}

// InvokeAmid plays the event while these faults are in the way. It leaves them
// there.
func (f *Instance) InvokeAmid(t testing.TB, e Event, rules []faults.Rule) Answer {
	t.Helper()
	for _, rule := range rules {
		f.Faults.Inject(rule)
	}
	return f.Invoke(t, e)
}

// RunOut lets the time of the request under way run out.
func (f *Instance) RunOut() { f.time.runOut() }

// note remembers an error on its way to the adapter, for the search for leaks.
func (f *Instance) note(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, err)
}

// recorded is the operation, its errors noted.
func (f *Instance) recorded(op api.Operation) api.Operation {
	prepare := op.Prepare
	op.Prepare = func(ctx context.Context, r *api.Request) api.Act {
		act := prepare(ctx, r)
		return func(ctx context.Context, c auth.Caller) (api.Response, error) {
			response, err := act(ctx, c)
			f.note(err)
			return response, err
		}
	}
	return op
}

// recordingVerifier is a verifier whose errors are noted.
type recordingVerifier struct {
	api.Verifier
	f *Instance
}

func (w recordingVerifier) Verify(ctx context.Context, key auth.KeyHash) (auth.Caller, error) {
	caller, err := w.Verifier.Verify(ctx, key)
	w.f.note(err)
	return caller, err
}
