// Package kit provides tests with real engines: the local server's
// DynamoDB, KMS and S3, with the tables, the key and the bucket of the template. Only
// tests import it.
//
// Each test binary has its own engines in a process. It starts with the first test that
// needs it and ends with the test binary. A new table takes about a second, so the
// tables are made once and shared: a test makes new accounts, workspaces and ids.
package kit

import (
	"context"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/infra/test/awsmodel"
	"signalbox.dev/shared/calls"
)

// Engines are running engines with everything in them that the service needs.
type Engines struct {
	// Config makes clients that reach the engines. It is the test's own copy:
	// put a faults.Transport into its HTTPClient to make calls fail.
	Config aws.Config
	// Tables are the names of the four tables, and the KMS key under which credentials are sealed.
	Tables Outputs
}

// running is the one set of engines of this test binary. It is computed once
// and never changes.
var running = sync.OnceValues(func() (Engines, error) {
	config, err := launch()
	if err != nil {
		return Engines{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return newEngines(ctx, config)
})

// Start returns the engines of this test binary. Without them it fails the test with
// one line that names the missing part; it never skips.
func Start(t testing.TB) Engines {
	t.Helper()
	engines, err := running()
	if err != nil {
		t.Fatalf("no engines to test on: %v", err)
	}
	return engines
}

// Must ends the test with the error, if there is one.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// OtherAccess is another access table of each model, for restores.
const OtherAccess = "other-access"

// ModelKeys are the KMS keys of each model. New credentials are sealed under the first.
var ModelKeys = [3]string{
	"arn:aws:kms:us-east-1:000000000000:key/00000000-0000-4000-8000-000000000000",
	"arn:aws:kms:us-east-1:000000000000:key/00000000-0000-4000-8000-000000000001",
	"arn:aws:kms:us-east-1:000000000000:key/00000000-0000-4000-8000-000000000002",
}

// OnModel returns a new model of AWS in place of engines, with a bucket of this versioning.
func OnModel(versioning string) (Engines, *awsmodel.World) {
	at := awsclients.Engines{DynamoDB: "http://dynamodb.model", KMS: "http://kms.model", S3: "http://s3.model", Region: "us-east-1", AccessKeyID: "an-id", SecretAccessKey: "a-secret"}
	o := Outputs{Access: "access", Credentials: "credentials", Jobs: "sync-jobs", Control: "control", Files: "files", SealingKey: ModelKeys[0]}
	world := awsmodel.New(awsmodel.Config{
		Tables: []string{o.Access, o.Credentials, o.Jobs, o.Control, OtherAccess}, Bucket: o.Files, Versioning: versioning, Keys: ModelKeys[:],
	})
	e := Engines{Config: at.Config(), Tables: o}
	e.Config.HTTPClient, e.Config.Retryer = world, calls.Retryer
	return e, world
}
