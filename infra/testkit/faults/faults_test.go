package faults_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/calls"
)

// start returns a configuration whose calls pass through faults, two attempts
// each, to an engine that answers every call with success, and how many attempts
// have reached the engine.
func start(t *testing.T) (*faults.Transport, aws.Config, *atomic.Int64) {
	t.Helper()
	applied := new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		applied.Add(1)
		if r.Header.Get("X-Amz-Target") != "" {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			_, _ = io.WriteString(w, `{"Item":{"pk":{"S":"a"}}}`)
		}
	}))
	t.Cleanup(server.Close)
	broken := faults.Wrap(nil)
	return broken, aws.Config{
		Region: "us-east-1", BaseEndpoint: &server.URL, HTTPClient: broken,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts = 2
				o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
			})
		},
	}, applied
}

func getItem(t *testing.T, c aws.Config) error {
	_, err := dynamodb.NewFromConfig(c).GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("t"), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "kind#1"}},
	})
	return err
}

func deleteObject(t *testing.T, c aws.Config) error {
	_, err := s3.NewFromConfig(c).DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
	return err
}

// The SDK reports each fault as it reports the real one, and the engine applies as
// many of two attempts as the fault says.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault   faults.Fault
		call    func(*testing.T, aws.Config) error
		code    string
		applied int64
	}{
		"refused":                {faults.Refuse(), getItem, "connection", 0},
		"answer lost":            {faults.LoseAnswer(), getItem, "connection", 2},
		"cut":                    {faults.CutAnswer(), getItem, "malformed_response", 1},
		"cut without a body":     {faults.CutAnswer(), deleteObject, "connection", 2},
		"garbled":                {faults.Garble(), getItem, "malformed_response", 1},
		"garbled without a body": {faults.Garble(), deleteObject, "connection", 2},
		"throttled by DynamoDB":  {faults.Throttle(), getItem, "ProvisionedThroughputExceededException", 0},
		"throttled by S3":        {faults.Throttle(), deleteObject, "SlowDown", 0},
		"conflict":               {faults.Conflict(), getItem, "TransactionConflictException", 0},
		"denied":                 {faults.Answer(http.StatusForbidden, "AccessDenied", "no"), deleteObject, "AccessDenied", 0},
		"otherwise":              {faults.Otherwise(http.StatusOK, "<"), getItem, "malformed_response", 1},
	} {
		t.Run(name, func(t *testing.T) {
			broken, config, applied := start(t)
			broken.Inject(faults.Rule{Fault: c.fault})
			if got := calls.Code(c.call(t, config)); got != c.code || applied.Load() != c.applied {
				t.Errorf("code %q, applied %d times; want %q, %d", got, applied.Load(), c.code, c.applied)
			}
		})
	}
}
