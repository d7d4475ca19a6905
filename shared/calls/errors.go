package calls

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Describe names a failure for the log. Of an error that came from AWS it
// keeps the service, operation, code, status and AWS's request id, and leaves
// AWS's own text out: services repeat parts of the request in it. An error of
// our own is described in full, since ours never quote a request.
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
