package faults_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/calls"
)

// engine answers every call with success and counts what reached it.
type engine struct {
	applied atomic.Int64
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.applied.Add(1)
	if r.Header.Get("X-Amz-Target") != "" {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, `{"Item":{"pk":{"S":"a"}},"CiphertextBlob":"AAAA"}`)
	}
}

// Do answers without a network, on which synctest's time would not stand still.
func (e *engine) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w.Result(), nil
}

// start gives an engine and a configuration whose calls pass through faults,
// two attempts each.
func start(t *testing.T) (*engine, *faults.Transport, aws.Config) {
	t.Helper()
	e := new(engine)
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	broken := faults.Wrap(nil)
	return e, broken, through(broken, server.URL)
}

func through(broken *faults.Transport, url string) aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &url, HTTPClient: broken,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts = 2
				o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
			})
		},
	}
}

func getItem(ctx context.Context, c aws.Config) error {
	_, err := dynamodb.NewFromConfig(c).GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String("t"), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a"}},
	})
	return err
}

func generate(ctx context.Context, c aws.Config) error {
	_, err := kms.NewFromConfig(c).GenerateDataKey(ctx, &kms.GenerateDataKeyInput{KeyId: aws.String("k")})
	return err
}

func deleteObject(ctx context.Context, c aws.Config) error {
	_, err := s3.NewFromConfig(c).DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
	return err
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault   faults.Fault
		call    func(context.Context, aws.Config) error
		code    string
		applied int64 // of two attempts that both meet the fault
	}{
		"refused":                {faults.Refuse(), getItem, "connection", 0},
		"answer lost":            {faults.LoseAnswer(), getItem, "connection", 2},
		"cut":                    {faults.CutAnswer(), getItem, "malformed_response", 1},
		"cut without a body":     {faults.CutAnswer(), deleteObject, "connection", 2},
		"garbled":                {faults.Garble(), getItem, "malformed_response", 1},
		"garbled without a body": {faults.Garble(), deleteObject, "connection", 2},
		"throttled by DynamoDB":  {faults.Throttle(), getItem, "ProvisionedThroughputExceededException", 0},
		"throttled by KMS":       {faults.Throttle(), generate, "ThrottlingException", 0},
		"throttled by S3":        {faults.Throttle(), deleteObject, "SlowDown", 0},
		"conflict":               {faults.Conflict(), getItem, "TransactionConflictException", 0},
		"denied":                 {faults.Answer(http.StatusForbidden, "AccessDenied", "no"), deleteObject, "AccessDenied", 0},
	} {
		t.Run(name, func(t *testing.T) {
			e, broken, config := start(t)
			broken.Inject(faults.Rule{Fault: c.fault})
			if got := calls.Code(c.call(t.Context(), config)); got != c.code || e.applied.Load() != c.applied {
				t.Errorf("code %q, applied %d times; want %q, %d", got, e.applied.Load(), c.code, c.applied)
			}
		})
	}
}

func TestStallsEndAtTheDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		fault   faults.Fault
		applied int64
	}{"before": {faults.Stall(), 0}, "after": {faults.StallAnswer(), 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := new(engine)
				broken := faults.Wrap(e)
				broken.Inject(faults.Rule{Fault: c.fault})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := getItem(ctx, through(broken, "http://engine"))
				if got := calls.Code(err); got != "deadline" || e.applied.Load() != c.applied {
					t.Errorf("code %q, applied %d times; want deadline, %d", got, e.applied.Load(), c.applied)
				}
			})
		})
	}
}

func TestARuleMeetsOneAttemptOfOneCall(t *testing.T) {
	_, broken, config := start(t)
	broken.Inject(faults.Rule{Operation: "GetItem", Call: 2, Attempt: 1, Fault: faults.Refuse()})
	for range 3 {
		if err := getItem(t.Context(), config); err != nil {
			t.Fatalf("the second attempt should have helped: %v", err)
		}
	}
	if err := deleteObject(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	type attempt struct {
		Service, Operation string
		Number, Attempt    int
		Failed             bool
	}
	var got []attempt
	for _, c := range broken.Calls() {
		got = append(got, attempt{c.Service, c.Operation, c.Number, c.Attempt, c.Failed})
	}
	want := []attempt{
		{"DynamoDB", "GetItem", 1, 1, false},
		{"DynamoDB", "GetItem", 2, 1, true},
		{"DynamoDB", "GetItem", 2, 2, false},
		{"DynamoDB", "GetItem", 3, 1, false},
		{"S3", "DeleteObject", 1, 1, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if table := broken.Calls()[0].Input["TableName"]; table != "t" {
		t.Errorf("recorded table %v", table)
	}
}

func TestCancelGivesAReasonForEachItem(t *testing.T) {
	_, broken, config := start(t)
	broken.Inject(faults.Rule{Fault: faults.Cancel("None", "ConditionalCheckFailed")})
	_, err := dynamodb.NewFromConfig(config).TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{Delete: &types.Delete{
			TableName: aws.String("t"), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a"}},
		}}},
	})
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		t.Fatalf("TransactWriteItems: %v", err)
	}
	var got []string
	for _, reason := range cancelled.CancellationReasons {
		got = append(got, aws.ToString(reason.Code))
	}
	if diff := cmp.Diff([]string{"None", "ConditionalCheckFailed"}, got); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

func TestUnprocessedGivesTheKeysBack(t *testing.T) {
	_, broken, config := start(t)
	broken.Inject(faults.Rule{Operation: "BatchGetItem", Fault: faults.Unprocessed()})
	asked := map[string]types.KeysAndAttributes{"t": {Keys: []map[string]types.AttributeValue{
		{"pk": &types.AttributeValueMemberS{Value: "a"}},
	}}}
	out, err := dynamodb.NewFromConfig(config).BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: asked})
	if err != nil || len(out.UnprocessedKeys["t"].Keys) != 1 {
		t.Errorf("unprocessed %v, %v", out, err)
	}
}

func TestAnswersThatAreOfAnotherKind(t *testing.T) {
	for name, c := range map[string]struct {
		fault   faults.Fault
		status  int
		body    string
		header  string // the Content-Type
		applied int64
	}{
		"otherwise":    {faults.Otherwise(http.StatusAccepted, "x"), http.StatusAccepted, "x", "application/x-amz-json-1.0", 1},
		"pretended":    {faults.Pretend(http.StatusOK, "x"), http.StatusOK, "x", "", 0},
		"bare":         {faults.Bare(), http.StatusOK, `{"Item":{"pk":{"S":"a"}},"CiphertextBlob":"AAAA"}`, "", 1},
		"another item": {faults.AnotherItem(), http.StatusOK, `{"Item":{"pk":{"S":"another#1"}}}`, "application/x-amz-json-1.0", 1},
	} {
		e, broken, config := start(t)
		broken.Inject(faults.Rule{Fault: c.fault})
		ask, err := http.NewRequestWithContext(t.Context(), http.MethodPost, *config.BaseEndpoint, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		ask.Header.Set("X-Amz-Target", "DynamoDB_20120810.GetItem")
		answer, err := broken.Do(ask)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || string(body) != c.body || answer.StatusCode != c.status || answer.Header.Get("Content-Type") != c.header || e.applied.Load() != c.applied {
			t.Errorf("%s: %d %q %s, applied %d times, %v", name, answer.StatusCode, answer.Header.Get("Content-Type"), body, e.applied.Load(), err)
		}
	}
}
