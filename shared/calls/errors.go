package calls

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Describe describes a failure for the log. From an error of AWS it keeps the service,
// operation, code, status and request id. It leaves out AWS's text, which may repeat
// parts of the request. It describes a network failure in full, with the host: such an
// error quotes no request. If the host sent something other than HTTP, only the host is
// named, because net/http quotes the bytes. Our own errors are described in full: they
// never quote a request.
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
	if request, sent := errors.AsType[*url.Error](err); sent {
		if asked, err := url.Parse(request.URL); err == nil {
			attrs = append(attrs, slog.String("host", asked.Host))
		}
		if network, failed := errors.AsType[*net.OpError](err); failed {
			attrs = append(attrs, slog.String("network", network.Error()))
		}
	}
	return slog.GroupValue(attrs...)
}

// Code is AWS's code of a failed call, such as "ThrottlingException", or our own word if
// the call has no such code.
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

// IsMalformed reports whether the response cannot be read: it was cut off, or the
// service writes no such response.
func IsMalformed(err error) bool {
	var response *awshttp.ResponseError // the SDK makes one without a status if it received nothing
	var api smithy.APIError
	return errors.As(err, &response) && response.HTTPStatusCode() > 0 && !errors.As(err, &api)
}

// Cancellation is why DynamoDB cancelled a transaction, over all its items.
type Cancellation int

const (
	// NotCancelled means every other outcome of a transaction.
	NotCancelled Cancellation = iota
	// Refused means that a condition does not hold or an item is invalid. The same
	// transaction would fail again.
	Refused
	// InConflict means that another write to one of the items was under way.
	InConflict
	// Throttled means that one of the items was throttled; another may have been in
	// conflict. The SDK's retryer has tried again.
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

// ErrStored marks a damaged row, which an operator must look at. It begins the error's text:
// "stored key 0a1b2c3d4e5f: unknown kind".
var ErrStored = errors.New("stored")

// ConditionFailed reports whether DynamoDB refused a single write because its condition
// does not hold, and returns the stored item, if the write asked for it.
func ConditionFailed(err error) (stored map[string]types.AttributeValue, failed bool) {
	refusal, failed := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !failed {
		return nil, false
	}
	return refusal.Item, true
}

// Unmet reports whether the condition of the i-th item cancelled a transaction, and
// returns the stored item, if the transaction asked for it.
func Unmet(err error, i int) (stored map[string]types.AttributeValue, unmet bool) {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok || i >= len(cancelled.CancellationReasons) {
		return nil, false
	}
	reason := cancelled.CancellationReasons[i]
	return reason.Item, aws.ToString(reason.Code) == "ConditionalCheckFailed"
}

// Bounded is an API option for SDK clients: each attempt of a call ends after the
// duration, and the next one may be made. The context bounds them all.
func Bounded(attempt time.Duration) func(*middleware.Stack) error {
	bound := middleware.FinalizeMiddlewareFunc("BoundAttempts",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			bounded, cancel := context.WithTimeout(ctx, attempt)
			defer cancel()
			out, metadata, err := next.HandleFinalize(bounded, in)
			if err != nil && ctx.Err() == nil && bounded.Err() != nil {
				err = os.ErrDeadlineExceeded // the SDK does not retry its own
			}
			return out, metadata, err
		})
	return func(stack *middleware.Stack) error { return stack.Finalize.Insert(bound, "Retry", middleware.After) }
}

// bodiless maps each call without a response body to its status of success.
var bodiless = map[string]int{
	"AbortMultipartUpload": http.StatusNoContent,
	"DeleteObject":         http.StatusNoContent,
	"PutObject":            http.StatusOK,
}

// Whole is an API option for SDK clients: it refuses an empty or malformed response of
// success. The SDK reads a response without a body, or with plain text from S3, as an
// output without members: a missing item or an empty listing. Whole also empties the
// output after a failed attempt. The SDK decodes all attempts into one output (dynamodb
// v1.74.0), so a member of a cut-off response could stay. The option may be given to a
// client twice.
//
// It also refuses a page of DynamoDB without its list, or a count without its number.
// DynamoDB always writes them, even if they are empty or zero. The SDK would read such a
// page as the empty end of a table.
func Whole(stack *middleware.Stack) error {
	const id = "RefuseMalformedResponse"
	if _, present := stack.Deserialize.Get(id); present {
		return nil
	}
	malformed := &smithy.DeserializationError{Err: errors.New("empty or malformed response")}
	check := middleware.DeserializeMiddlewareFunc(id,
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleDeserialize(ctx, in)
			response, ok := out.RawResponse.(*smithyhttp.Response)
			if err == nil && ok && response.StatusCode < http.StatusMultipleChoices &&
				(!isComplete(awsmiddleware.GetOperationName(ctx), response) || counts(ctx) && !hasCount(response)) {
				err = malformed
			}
			return out, metadata, err
		})
	list := middleware.DeserializeMiddlewareFunc("RefusePageWithoutList",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleDeserialize(ctx, in)
			if err == nil && !counts(ctx) && lacksList(out.Result) {
				err = malformed
			}
			return out, metadata, err
		})
	forget := middleware.DeserializeMiddlewareFunc("ForgetFailedAttempt",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleDeserialize(ctx, in)
			if output := reflect.ValueOf(out.Result); err != nil && output.Kind() == reflect.Pointer && !output.IsNil() {
				output.Elem().SetZero()
			}
			return out, metadata, err
		})
	note := middleware.InitializeMiddlewareFunc("NoteCount",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			return next.HandleInitialize(context.WithValue(ctx, countsKey{}, asksForCount(in.Parameters)), in)
		})
	return errors.Join(stack.Initialize.Add(note, middleware.Before), stack.Deserialize.Add(check, middleware.After),
		stack.Deserialize.Insert(list, "OperationDeserializer", middleware.Before), stack.Deserialize.Add(forget, middleware.Before))
}

type countsKey struct{}

// counts reports whether the call asks DynamoDB only for a number of items.
func counts(ctx context.Context) bool { return ctx.Value(countsKey{}) == true }

func asksForCount(input any) bool {
	switch in := input.(type) {
	case *dynamodb.QueryInput:
		return in.Select == types.SelectCount
	case *dynamodb.ScanInput:
		return in.Select == types.SelectCount
	}
	return false
}

// lacksList reports whether the output should have a list of items and has none.
func lacksList(output any) bool {
	switch page := output.(type) {
	case *dynamodb.QueryOutput:
		return page.Items == nil
	case *dynamodb.ScanOutput:
		return page.Items == nil
	}
	return false
}

// hasCount looks for the number in the body, because the SDK's output has 0 without one. If
// the body cannot be read, the SDK meets the same error.
func hasCount(response *smithyhttp.Response) bool {
	body, err := io.ReadAll(response.Body)
	replaceBody(response, body)
	var page struct{ Count *int64 }
	return err != nil || json.Unmarshal(body, &page) == nil && page.Count != nil
}

// replaceBody puts bytes that were read back before the rest of the body.
func replaceBody(response *smithyhttp.Response, read []byte) {
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(read), response.Body), response.Body}
}

// isComplete looks at the first byte of the body after white space, which S3 may send
// while it works. Services write only JSON objects and XML.
func isComplete(operation string, response *smithyhttp.Response) bool {
	if status, ok := bodiless[operation]; ok {
		return response.StatusCode == status
	}
	first := []byte{' '}
	for bytes.Contains([]byte(" \t\r\n"), first) {
		if _, err := io.ReadFull(response.Body, first); err != nil {
			return false
		}
	}
	replaceBody(response, first)
	return response.StatusCode == http.StatusOK && (first[0] == '{' || first[0] == '<')
}
