// Package functest sends requests to one function as API Gateway and Lambda do:
// proxy events, through the handler that its main.go makes, with real engines
// behind it. Only the tests of functions import it.
//
// Every request carries markers in all places in which a caller might put a secret.
// Every answer is checked: its envelope, its log line, and that no marker is in it, in
// the log, in an error on the way, or in anything that was sent to AWS.
package functest

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/boot"
)

// Assemble makes a function's operation, as in its main.go.
type Assemble func(*boot.Environment) (api.Verifier, *slog.Logger, api.Operation)

// Env is the environment of one function. Its clients reach the engines without
// faults.
type Env struct {
	Engines  testkit.Engines
	DB       *dynamodb.Client
	KMS      *kms.Client
	S3       *s3.Client
	Registry *auth.Registry
	// Bucket is the function's FILES_BUCKET.
	Bucket string

	assemble Assemble
}

// New returns an environment for the function.
func New(t testing.TB, assemble Assemble) *Env {
	t.Helper()
	engines := testkit.Start(t)
	// All instances of the function share connections: there will be thousands.
	engines.Config.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = 64
	})
	db := dynamodb.NewFromConfig(engines.Config)
	return &Env{
		Engines: engines, DB: db, KMS: kms.NewFromConfig(engines.Config), S3: s3.NewFromConfig(engines.Config),
		Registry: auth.NewRegistry(db, engines.Tables.Access),
		assemble: assemble,
	}
}

// WithBucket returns the environment with another bucket.
func (s *Env) WithBucket(bucket string) *Env {
	other := *s
	other.Bucket = bucket
	return &other
}

func (s *Env) variable(name string) string {
	if name == "FILES_BUCKET" && s.Bucket == "" {
		panic(`the function reads FILES_BUCKET: make its environment with env.WithBucket(env.Engines.Bucket(t, ""))`)
	}
	tables := s.Engines.Tables
	return map[string]string{
		"ACCESS_TABLE": tables.Access, "CREDENTIALS_TABLE": tables.Credentials,
		"SYNC_JOBS_TABLE": tables.SyncJobs, "CONTROL_TABLE": tables.Control,
		"SEALING_KEY_ARN": s.Engines.KeyARN, "FILES_BUCKET": s.Bucket,
	}[name]
}

// Instance is one instance of the function, with its own faults. Like one of Lambda's
// it serves one request at a time.
type Instance struct {
	Faults *faults.Transport

	handler lambda.Handler
	log     bytes.Buffer

	mu   sync.Mutex
	errs []error
}

// Instance starts an instance.
func (s *Env) Instance() *Instance {
	f := &Instance{Faults: faults.Wrap(finishing{s.Engines.Config.HTTPClient})}
	config := s.Engines.Config
	config.HTTPClient = f.Faults
	env := boot.NewEnvironment(config, slog.New(slog.NewJSONHandler(&f.log, nil)), s.variable)
	keys, log, op := s.assemble(env)
	prepare := op.Prepare
	op.Prepare = func(ctx context.Context, r *api.Request) api.Act {
		act := prepare(ctx, r)
		return func(ctx context.Context, c auth.Caller) (api.Response, error) {
			response, err := act(ctx, c)
			f.note(err)
			return response, err
		}
	}
	f.handler = api.Handler(recordingVerifier{keys, f}, log, op)
	return f
}

// Invoke sends the event and checks the parts that every answer must have. The faults,
// if any, stay injected.
func (f *Instance) Invoke(t testing.TB, e Event, rules ...faults.Rule) Answer {
	t.Helper()
	for _, rule := range rules {
		f.Faults.Inject(rule)
	}
	return f.send(t, e.Payload(), e.RequestID, e.Body)
}

// send sends a proxy event that has this id and body.
func (f *Instance) send(t testing.TB, event []byte, requestID, body string) Answer {
	t.Helper()
	f.log.Reset()
	f.errs = nil
	before := len(f.Faults.Calls())
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // nothing depends on how fast the machine is
	defer cancel()
	payload, err := f.handler.Invoke(ctx, event)
	if err != nil {
		t.Fatalf("the function returned an error: %v", err)
	}
	answer := ReadAnswer(t, payload, f.log.String())
	if answer.RequestID != requestID {
		t.Errorf("X-Request-Id %q, want %q", answer.RequestID, requestID)
	}
	answer.Calls = f.Faults.Calls()[before:]
	checkCalls(t, answer.Calls)
	checkLeaks(t, body, answer, f.errs)
	return answer
}

// note keeps an error on its way to the adapter, for the search for leaks.
func (f *Instance) note(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, err)
}

// recordingVerifier is a verifier that notes its errors.
type recordingVerifier struct {
	api.Verifier
	f *Instance
}

func (v recordingVerifier) Verify(ctx context.Context, key auth.KeyHash) (auth.Caller, error) {
	caller, err := v.Verifier.Verify(ctx, key)
	v.f.note(err)
	return caller, err
}

// finishing is a client that lets the engines finish each call, as AWS does even when
// the caller is gone. ExtendDB stops in the middle of a write if the caller has gone,
// and then serves nothing for half a minute.
type finishing struct {
	aws.HTTPClient
}

// Do implements aws.HTTPClient.
func (c finishing) Do(r *http.Request) (*http.Response, error) {
	answer, err := c.HTTPClient.Do(r.WithContext(context.WithoutCancel(r.Context())))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if gone := r.Context().Err(); gone != nil {
		return nil, gone
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, err
}
