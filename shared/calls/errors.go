package calls

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Describe names a failure for the log. Of an error that came from AWS it
// keeps the service, operation, code, status and AWS's request id, and leaves
// AWS's own text out: services repeat parts of the request in it. A failure of
// the network is described in full, with the host: it repeats nothing either. An
// error of our own is described in full, since ours never quote a request.
func Describe(err error) slog.Value {
	var op *smithy.OperationError
	if !errors.As(err, &op) {
		return slog.GroupValue(slog.String("text", err.Error()))
	}
	attrs := []slog.Attr{
		slog.String("service", op.ServiceID),
		slog.String("operation", op.OperationName),
		slog.String("code", Code(err)),
	}
	var response *awshttp.ResponseError
	if errors.As(err, &response) {
		attrs = append(attrs,
			slog.Int("status", response.HTTPStatusCode()),
			slog.String("aws_request_id", response.ServiceRequestID()))
	}
	request, sent := errors.AsType[*url.Error](err)
	network, failed := errors.AsType[*net.OpError](err)
	if sent && failed {
		if asked, err := url.Parse(request.URL); err == nil {
			attrs = append(attrs, slog.String("host", asked.Host), slog.String("network", network.Error()))
		}
	}
	return slog.GroupValue(attrs...)
}

// Code is AWS's code of a failed call, such as "ThrottlingException", or a
// word of ours where the call ended without one.
func Code(err error) string {
	var api smithy.APIError
	var network net.Error
	switch {
	case errors.As(err, &api):
		return api.ErrorCode()
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case IsMalformed(err):
		return "malformed_response"
	case errors.As(err, &network) && network.Timeout():
		return "timeout"
	default:
		return "connection"
	}
}

// IsMalformed reports whether a response was received that cannot be read: it was
// cut off, or is not what the service writes.
func IsMalformed(err error) bool {
	var response *awshttp.ResponseError // the SDK makes one without a status where nothing was received
	var api smithy.APIError
	return errors.As(err, &response) && response.HTTPStatusCode() > 0 && !errors.As(err, &api)
}

// Cancellation is why DynamoDB cancelled a transaction, over all its items.
type Cancellation int

const (
	// NotCancelled is every other outcome of a transaction.
	NotCancelled Cancellation = iota
	// Refused means that the same transaction does not pass: a condition does not
	// hold, or an item is not acceptable.
	Refused
	// InConflict means that another write to one of the items was under way.
	InConflict
	// Throttled means that there was no capacity for one of the items, whether or
	// not another one was in conflict. The SDK's retryer has tried again.
	Throttled
)

// WhyCancelled classifies the outcome of a transaction. DynamoDB reports
// throttling and conflicts as reasons of a cancellation, one for each item.
func WhyCancelled(err error) Cancellation {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		return NotCancelled
	}
	why := Refused
	for _, reason := range cancelled.CancellationReasons {
		switch aws.ToString(reason.Code) {
		case "None", "":
		case "TransactionConflict":
			why = max(why, InConflict)
		case "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded":
			why = Throttled
		default:
			return Refused
		}
	}
	return why
}

// ConditionFailed reports whether DynamoDB refused a single write because its
// condition does not hold, and returns the item that is stored, where the write
// asked for it.
func ConditionFailed(err error) (stored map[string]types.AttributeValue, failed bool) {
	refusal, failed := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !failed {
		return nil, false
	}
	return refusal.Item, true
}

// Retryables are errors that the SDK's retryer does not retry by itself: a
// malformed response, a throttled transaction, and TransactionConflictException, by
// which DynamoDB refuses a single write while a transaction changes the same item.
// They are for clients whose every call may be made twice.
func Retryables() []retry.IsErrorRetryable {
	return []retry.IsErrorRetryable{
		retryIf(IsMalformed),
		retry.RetryableErrorCode{Codes: map[string]struct{}{"TransactionConflictException": {}}},
		retryIf(func(err error) bool { return WhyCancelled(err) == Throttled }),
	}
}

func retryIf(applies func(error) bool) retry.IsErrorRetryable {
	return retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
		if applies(err) {
			return aws.TrueTernary
		}
		return aws.UnknownTernary
	})
}

// NoteRepeats returns the retryer with a note of each error after which it has the SDK
// send a call again: the attempt before may have been applied and its response lost.
func NoteRepeats(of aws.Retryer, note func(error)) aws.Retryer { return notingRetryer{of, note} }

type notingRetryer struct {
	aws.Retryer
	note func(error)
}

// IsErrorRetryable implements aws.Retryer.
func (r notingRetryer) IsErrorRetryable(err error) bool {
	again := r.Retryer.IsErrorRetryable(err)
	if again {
		r.note(err)
	}
	return again
}

// Pause waits before a call is made again for a reason the SDK does not retry:
// attempt, from 1, is how often it was made. The wait is up to 25 ms at first
// and doubles up to 400 ms; all of it is random, so that those who wait do not
// return in step. The error is the context's, which bounds how often.
func Pause(ctx context.Context, attempt int) error {
	longest := 25 * time.Millisecond << min(attempt-1, 4)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(longest)): //nolint:gosec // spreading load needs no secrecy
		return nil
	}
}

// bodiless are the calls whose response has no body, each with its status
// of success.
var bodiless = map[string]int{
	"DeleteObject": http.StatusNoContent,
	"PutObject":    http.StatusOK,
}

// Whole is an API option for SDK clients: it refuses an empty or malformed response
// of success. The SDK reads one without a body, and one of plain text from S3, as
// an output without members: an item that does not exist, an empty listing.
func Whole(stack *middleware.Stack) error {
	check := middleware.DeserializeMiddlewareFunc("RefuseMalformedResponse",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleDeserialize(ctx, in)
			response, ok := out.RawResponse.(*smithyhttp.Response)
			if err == nil && ok && response.StatusCode < http.StatusMultipleChoices && !isWhole(awsmiddleware.GetOperationName(ctx), response) {
				err = &smithy.DeserializationError{Err: errors.New("empty or malformed response")}
			}
			return out, metadata, err
		})
	return stack.Deserialize.Add(check, middleware.After)
}

// isWhole looks at the first byte of the body after white space, which S3 may
// send while it works: JSON objects and XML are all that services write.
func isWhole(operation string, response *smithyhttp.Response) bool {
	if status, ok := bodiless[operation]; ok {
		return response.StatusCode == status
	}
	first := []byte{' '}
	for bytes.Contains([]byte(" \t\r\n"), first) {
		if _, err := io.ReadFull(response.Body, first); err != nil {
			return false
		}
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first), response.Body), response.Body}
	return response.StatusCode == http.StatusOK && (first[0] == '{' || first[0] == '<')
}
