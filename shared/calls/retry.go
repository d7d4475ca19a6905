package calls

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Retryables are errors that the SDK's retryer does not retry by itself: an
// answer that cannot be read, TransactionConflictException, which DynamoDB
// answers to a plain write that met a transaction on the same item, and a
// throttled transaction. They are for clients whose every call may be made twice.
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
