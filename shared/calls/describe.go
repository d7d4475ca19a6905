package calls

import (
	"context"
	"errors"
	"log/slog"
	"net"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

// Describe names a failure for the log. Of an error that came from AWS it
// keeps the service, operation, code, status and AWS's request id, and leaves
// AWS's own text out: services repeat parts of the request in it. An error of
// our own is told in full, since ours never quote a request.
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
		return "malformed_answer"
	case errors.As(err, &network) && network.Timeout():
		return "timeout"
	default:
		return "connection"
	}
}

// IsMalformed reports whether an answer came that could not be read: it was cut
// off, or is not what the service writes.
func IsMalformed(err error) bool {
	var answered *awshttp.ResponseError // the SDK makes one without a status where nothing came
	var api smithy.APIError
	return errors.As(err, &answered) && answered.HTTPStatusCode() > 0 && !errors.As(err, &api)
}
