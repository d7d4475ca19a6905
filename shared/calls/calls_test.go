package calls_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
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

func TestPauseEndsWithTheContext(t *testing.T) {
	if err := calls.Pause(t.Context(), 1); err != nil {
		t.Errorf("Pause: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for attempt := range 70 { // far beyond what a shift could hold
		if err := calls.Pause(ctx, attempt+1); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Pause(%d): %v", attempt+1, err)
		}
	}
}

// An answer that cannot be read is told from one that never came and from an
// error that the service names.
func TestMalformedAnswers(t *testing.T) {
	answered := func(status int, err error) error {
		return &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err,
		}}
	}
	for _, c := range []struct {
		name      string
		err       error
		malformed bool
	}{
		{"unreadable", answered(200, errors.New("syntax")), true},
		{"never came", answered(0, errors.New("reset")), false},
		{"an error of the service's", answered(400, &smithy.GenericAPIError{Code: "ValidationException"}), false},
		{"our own", errors.New("our own words"), false},
	} {
		if got := calls.IsMalformed(c.err); got != c.malformed || (calls.Code(c.err) == "malformed_answer") != c.malformed {
			t.Errorf("%s: malformed %v, code %s", c.name, got, calls.Code(c.err))
		}
	}
}

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
}

func TestCodesOfCallsThatEndedWithoutOne(t *testing.T) {
	ended := func(err error) error {
		return &smithy.OperationError{ServiceID: "KMS", OperationName: "Decrypt", Err: err}
	}
	for want, err := range map[string]error{
		"deadline":   context.DeadlineExceeded,
		"canceled":   context.Canceled,
		"timeout":    &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		"connection": &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
	} {
		if got := calls.Code(ended(err)); got != want {
			t.Errorf("%v: code %s, want %s", err, got, want)
		}
	}
	answered := &awshttp.ResponseError{RequestID: "request-1", ResponseError: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: 503}}, Err: errors.New("syntax"),
	}}
	if got := calls.Describe(ended(answered)).String(); !strings.Contains(got, "503") || !strings.Contains(got, "request-1") {
		t.Errorf("Describe = %s", got)
	}
}
