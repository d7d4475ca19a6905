package calls

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Describe describes a failure for the log. From an error of AWS it keeps the service,
// operation, code, status and request id. It leaves out AWS's text, which may repeat
// parts of the request. It describes a network failure in full, with the host: such an
// error quotes no request. If the host sent something other than HTTP, only the host is
// named, because net/http quotes the bytes. If the SDK got no credentials, it says only that:
// the reason may quote what a program wrote. Our own errors are described in full: they never
// quote a request.
func Describe(err error) slog.Value {
	op, ok := errors.AsType[*smithy.OperationError](err)
	if !ok {
		return slog.GroupValue(slog.String("text", err.Error()))
	}
	attrs := []slog.Attr{
		slog.String("service", op.ServiceID),
		slog.String("operation", op.OperationName),
		slog.String("code", Code(err)),
	}
	if Code(err) == noCredentials {
		attrs = append(attrs, slog.String("text", "no AWS credentials: the process has no role, profile or variables that yield them"))
	}
	if missing, ok := errors.AsType[*missingTable](err); ok {
		attrs = append(attrs, slog.String("table", missing.name))
	}
	if response, received := errors.AsType[*awshttp.ResponseError](err); received {
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

// noCredentials is the code of a call that was not sent, because it could not be signed.
const noCredentials = "credentials"

// Code is AWS's code of a failed call, such as "ThrottlingException", or our own word if
// the call has no such code. It is "" if err is nil.
func Code(err error) string {
	api, named := errors.AsType[smithy.APIError](err)
	network, failed := errors.AsType[net.Error](err)
	_, answered := errors.AsType[*awshttp.ResponseError](err)
	switch {
	case err == nil:
		return ""
	case named:
		return api.ErrorCode()
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case IsMalformed(err):
		return "malformed_response"
	case failed && network.Timeout():
		return "timeout"
	case failed || answered:
		return "connection"
	default:
		return noCredentials // the SDK has no type for it
	}
}

// missingTable is the error of a call to a table that does not exist. AWS does not name it.
type missingTable struct {
	name string
	error
}

func (m *missingTable) Unwrap() error { return m.error }

// IsMalformed reports whether the response cannot be read: it was cut off, or the
// service writes no such response.
func IsMalformed(err error) bool {
	response, received := errors.AsType[*awshttp.ResponseError](err)
	_, named := errors.AsType[smithy.APIError](err)
	return received && response.HTTPStatusCode() > 0 && !named // the SDK makes one without a status if it received nothing
}

// IsUnsent reports whether no connection could be opened: no service got the request.
func IsUnsent(err error) bool {
	network, failed := errors.AsType[*net.OpError](err)
	return failed && network.Op == "dial"
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

// Damage is the error for a damaged row: this service never writes it, and an operator must look
// at it.
type Damage struct {
	Kind, ID string // what the row is, for example a key and the first digits of its hash
	Wrong    error  // it contains no stored value
}

func (d *Damage) Error() string { return "stored " + d.Kind + " " + d.ID + ": " + d.Wrong.Error() }

// Unwrap yields what is wrong.
func (d *Damage) Unwrap() error { return d.Wrong }

// Is makes every Damage an ErrDamaged.
func (d *Damage) Is(target error) bool { return target == ErrDamaged }

// ErrDamaged is every Damage, for errors.Is.
var ErrDamaged = errors.New("a stored row is damaged")

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
