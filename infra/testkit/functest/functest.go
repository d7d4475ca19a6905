// Package stage puts one function before real engines and plays requests to it
// as API Gateway and Lambda would: through the handler's one public door, with
// proxy events. Only the tests of functions import it.
//
// Every request carries markers where a caller might put a secret, and every
// answer is checked for what all answers owe: the envelope, and that no marker
// is in it, in the log, in an error on the way, or in anything that was sent to
// AWS.
package functest

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/boot"
)

// Assemble makes a function's operation, as in its main.go.
type Assemble func(*boot.Environment) (api.Verifier, *slog.Logger, api.Operation)

// Stage is where one function is tried. Its clients reach the engines past all
// faults.
type Env struct {
	Engines  testkit.Engines
	DB       *dynamodb.Client
	KMS      *kms.Client
	S3       *s3.Client
	Registry *auth.Registry
	// Bucket is the one the function is told of.
	Bucket string

	assemble Assemble
}

// New sets a stage for the function.
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

// In is the stage with another bucket.
func (s *Env) In(bucket string) *Env {
	other := *s
	other.Bucket = bucket
	return &other
}

// variables is the environment of a function.
func (s *Env) variables(name string) string {
	tables := s.Engines.Tables
	return map[string]string{
		"ACCESS_TABLE": tables.Access, "CREDENTIALS_TABLE": tables.Credentials,
		"SYNC_JOBS_TABLE": tables.SyncJobs, "CONTROL_TABLE": tables.Control,
		"SEALING_KEY_ARN": s.Engines.KeyARN, "FILES_BUCKET": s.Bucket,
	}[name]
}

// config makes clients that reach the engines through the transport.
func (s *Env) config(through aws.HTTPClient) aws.Config {
	config := s.Engines.Config
	config.HTTPClient = through
	return config
}

// steady is a client that lets the engines finish what they were asked, as they
// do in AWS whatever becomes of the caller. ExtendDB stops in the middle of a
// write whose caller has gone, and then serves nobody for half a minute.
type steady struct {
	aws.HTTPClient
}

// Do implements aws.HTTPClient.
func (s steady) Do(r *http.Request) (*http.Response, error) {
	answer, err := s.HTTPClient.Do(r.WithContext(context.WithoutCancel(r.Context())))
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
