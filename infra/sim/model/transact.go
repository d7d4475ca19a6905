package model

import (
	"net/http"
	"reflect"
	"strings"
	"time"
)

// tokenLife is how long DynamoDB remembers the token of a transaction.
const tokenLife = 10 * time.Minute

// remembered is a transaction that was applied.
type remembered struct {
	items []transactItem
	until time.Time
}

// transactItem is one item of a transaction. Exactly one member is set.
type transactItem struct{ ConditionCheck, Put, Update, Delete *write }

func (i transactItem) write() (*write, func(write, *prepared) error) {
	var found *write
	var next func(write, *prepared) error
	count := 0
	for _, kind := range []struct {
		in   *write
		next func(write, *prepared) error
	}{{i.ConditionCheck, conditionCheck}, {i.Put, put}, {i.Update, updateItem}, {i.Delete, deleteItem}} {
		if kind.in != nil {
			found, next = kind.in, kind.next
			count++
		}
	}
	if count != 1 {
		return nil, nil
	}
	return found, next
}

type transaction struct {
	TransactItems      []transactItem
	ClientRequestToken string
}

func (w *World) transactWriteItems(in transaction) (any, error) {
	if len(in.TransactItems) == 0 || len(in.TransactItems) > maxTransaction {
		return nil, invalid("1 validation error detected: Value at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100, Member must have length greater than or equal to 1")
	}
	all := make([]*prepared, len(in.TransactItems))
	size := 0
	for i, item := range in.TransactItems {
		one, next := item.write()
		if one == nil {
			return nil, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
		}
		if one.ReturnValues != "" {
			return nil, notModelled("ReturnValues in a transaction")
		}
		var err error
		if all[i], err = w.prepare(*one, next); err != nil {
			return nil, err
		}
		size += sizeOf(Item(one.Item))
	}
	if !distinctItems(all) {
		return nil, invalid("Transaction request cannot include multiple operations on one item")
	}
	if size > maxTransactSize {
		return nil, invalid("Item size has exceeded the maximum allowed size")
	}
	if applied, err := w.applied(in); err != nil || applied {
		return map[string]any{}, err
	}
	if err := commitAll(all); err != nil {
		return nil, err
	}
	if in.ClientRequestToken != "" {
		w.tokens[in.ClientRequestToken] = remembered{in.TransactItems, w.now().Add(tokenLife)}
	}
	return map[string]any{}, nil
}

// applied reports whether the transaction was applied under its token before. If
// another transaction had the token, that is an error.
func (w *World) applied(in transaction) (bool, error) {
	if len(in.ClientRequestToken) > 36 {
		return false, invalid("1 validation error detected: Value at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or equal to 36")
	}
	earlier, ok := w.tokens[in.ClientRequestToken]
	if !ok || !w.now().Before(earlier.until) {
		return false, nil
	}
	if !reflect.DeepEqual(earlier.items, in.TransactItems) {
		return false, refusal("IdempotentParameterMismatchException", "The provided client token was used with different parameters")
	}
	return true, nil
}

// commitAll makes all the writes or none.
func commitAll(all []*prepared) error {
	outcomes, reasons, failed := make([]outcome, len(all)), make([]Reason, len(all)), false
	for i, p := range all {
		o, err := p.try()
		outcomes[i], reasons[i] = o, Reason{Code: "None"}
		if err == nil {
			continue
		}
		failed = true
		known := errorOf(err)
		if known.Code == "NotModelled" {
			return known
		}
		reasons[i] = Reason{Code: "ValidationError", Message: known.Message}
		if known.Code == "ConditionalCheckFailedException" {
			reasons[i] = Reason{"ConditionalCheckFailed", known.Message, wire(known.Item)}
		}
	}
	if failed {
		return Cancelled(reasons...)
	}
	for i, p := range all {
		p.commit(outcomes[i])
	}
	return nil
}

// Cancelled is DynamoDB's error for a transaction that it cancelled, with a reason for
// each of its items. The code of an item that is not at fault is None.
func Cancelled(reasons ...Reason) *Error {
	codes := make([]string, len(reasons))
	for i, reason := range reasons {
		codes[i] = reason.Code
	}
	return &Error{
		Status: http.StatusBadRequest, Code: "TransactionCanceledException", Reasons: reasons,
		Message: "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]",
	}
}
