package calls_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"signalbox.dev/shared/calls"
)

func TestTogetherRunsSideBySide(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	meet := func(context.Context) { both.Done(); both.Wait() } // each waits for the other
	calls.Together(t.Context(), meet, meet)
	calls.Together(t.Context())
}

func TestTogetherPanicsInTheCaller(t *testing.T) {
	for depth := range 4 {
		var done atomic.Int32
		func() {
			defer func() {
				p, ok := recover().(calls.Panic)
				if !ok || p.Value != "boom" || !strings.Contains(string(p.Stack), "calls_test.boom") {
					t.Errorf("depth %d: recovered %T with value %v and stack %s", depth, p, p.Value, p.Stack)
				}
			}()
			nested(t.Context(), depth, &done)
		}()
		if int(done.Load()) != depth+1 {
			t.Errorf("depth %d: %d other functions were waited for", depth, done.Load())
		}
	}
}

// nested panics under depth calls of Together within one another.
func nested(ctx context.Context, depth int, done *atomic.Int32) {
	calls.Together(ctx,
		func(ctx context.Context) {
			if depth == 0 {
				boom()
			}
			nested(ctx, depth-1, done)
		},
		func(context.Context) { done.Add(1) },
	)
}

func boom() { panic("boom") }

func TestDescribeLeavesOutWhatAWSWrote(t *testing.T) {
	const marker = "sk-marker"
	err := &smithy.OperationError{
		ServiceID: "DynamoDB", OperationName: "PutItem",
		Err: &smithy.GenericAPIError{Code: "ValidationException", Message: "value " + marker},
	}
	got := calls.Describe(err).String()
	if strings.Contains(got, marker) || !strings.Contains(got, "ValidationException") || !strings.Contains(got, "PutItem") {
		t.Errorf("Describe = %s", got)
	}
	if got := calls.Describe(errors.New("our own words")).String(); !strings.Contains(got, "our own words") {
		t.Errorf("Describe = %s", got)
	}
	err.Err = &smithyhttp.RequestSendError{Err: &url.Error{
		Op: "Get", URL: "http://an-engine:3002/" + marker, Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED},
	}}
	got = calls.Describe(err).String()
	if strings.Contains(got, marker) || !strings.Contains(got, "host=an-engine:3002 network=dial tcp: connection refused") {
		t.Errorf("Describe = %s", got)
	}
}

func TestCodes(t *testing.T) {
	response := func(status int, err error) error {
		return &awshttp.ResponseError{RequestID: "request-1", ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err,
		}}
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{context.DeadlineExceeded, "deadline"},
		{context.Canceled, "canceled"},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, "timeout"},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "connection"},
		{response(0, errors.New("reset")), "connection"},
		{response(200, errors.New("syntax")), "malformed_response"},
		{response(400, &smithy.GenericAPIError{Code: "ValidationException"}), "ValidationException"},
		{errors.New("our own words"), "connection"},
	} {
		err := &smithy.OperationError{ServiceID: "KMS", OperationName: "Decrypt", Err: c.err}
		if got := calls.Code(err); got != c.want || calls.IsMalformed(err) != (c.want == "malformed_response") {
			t.Errorf("%v: code %s, want %s", err, got, c.want)
		}
	}
	err := &smithy.OperationError{ServiceID: "KMS", OperationName: "Decrypt", Err: response(503, errors.New("syntax"))}
	if got := calls.Describe(err).String(); !strings.Contains(got, "503") || !strings.Contains(got, "request-1") {
		t.Errorf("Describe = %s", got)
	}
}

func TestWhyCancelled(t *testing.T) {
	for _, c := range []struct {
		reasons string
		want    calls.Cancellation
	}{
		{"None ConditionalCheckFailed", calls.Refused},
		{"ConditionalCheckFailed TransactionConflict", calls.Refused},
		{"None ValidationError ThrottlingError", calls.Refused},
		{"None TransactionConflict", calls.InConflict},
		{"TransactionConflict RequestLimitExceeded", calls.Throttled},
		{"ProvisionedThroughputExceeded TransactionConflict", calls.Throttled},
		{"ThrottlingError None", calls.Throttled},
	} {
		cancelled := &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{}, {Code: aws.String("")}}}
		for code := range strings.FieldsSeq(c.reasons) {
			cancelled.CancellationReasons = append(cancelled.CancellationReasons, types.CancellationReason{Code: &code})
		}
		if got := calls.WhyCancelled(cancelled); got != c.want {
			t.Errorf("%s: %v, want %v", c.reasons, got, c.want)
		}
	}
	if got := calls.WhyCancelled(errors.New("another")); got != calls.NotCancelled {
		t.Errorf("another error: %v", got)
	}
}
