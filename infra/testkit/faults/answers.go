package faults

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Answer is an AWS error that the engine is said to have given: it never hears
// of the attempt. The body is as the service asked writes it.
func Answer(status int, code, message string) Fault {
	return answerWith(status, code, map[string]any{"message": message})
}

// Throttle is the answer of a service that is asked too much, by its own name
// for it. DynamoDB's gives no reasons: see ThrottleFor.
func Throttle() Fault {
	return func(r *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
		call, err := read(r)
		if err != nil {
			return nil, err
		}
		fault := Answer(http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
		switch call.Service {
		case "DynamoDB":
			fault = Answer(http.StatusBadRequest, "ProvisionedThroughputExceededException", "The level of configured provisioned throughput was exceeded.")
		case "KMS":
			fault = Answer(http.StatusBadRequest, "ThrottlingException", "You have exceeded the rate at which you may call KMS.")
		}
		return fault(r, apply)
	}
}

// ThrottleFor is DynamoDB's answer where a key range, a table or the account is
// asked too much, with the reasons that distinguish them, such as
// "TableWriteKeyRangeThroughputExceeded".
func ThrottleFor(code string, reasons ...string) Fault {
	all := []map[string]string{}
	for _, reason := range reasons {
		all = append(all, map[string]string{"reason": reason, "resource": "arn:aws:dynamodb:us-east-1:000000000000:table/a-test-has-it"})
	}
	member := "ThrottlingReasons"
	if code == "ThrottlingException" {
		member = "throttlingReasons"
	}
	return answerWith(http.StatusBadRequest, code, map[string]any{
		"message": "Throughput exceeds the current capacity.", member: all,
	})
}

// Conflict is DynamoDB's answer to a plain write that met a transaction on the
// same item.
func Conflict() Fault {
	return Answer(http.StatusBadRequest, "TransactionConflictException", "Transaction is ongoing for the item")
}

// CancellationReasons are the codes of DynamoDB's reasons for cancelling a
// transaction on account of an item; where it has none it says "None".
func CancellationReasons() []string {
	return []string{
		"ConditionalCheckFailed", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded",
		"RequestLimitExceeded", "ItemCollectionSizeLimitExceeded", "ValidationError",
	}
}

// Cancel is DynamoDB's answer to a transaction that was cancelled, with a reason
// for each of its items.
func Cancel(reasons ...string) Fault {
	type reason struct{ Code, Message string }
	var all []reason
	for _, code := range reasons {
		all = append(all, reason{Code: code, Message: "as a test has it"})
	}
	return answerWith(http.StatusBadRequest, "TransactionCanceledException", map[string]any{
		"Message":             fmt.Sprintf("Transaction cancelled, please refer cancellation reasons for specific reasons [%s]", strings.Join(reasons, ", ")),
		"CancellationReasons": all,
	})
}

// Unprocessed is the answer to a BatchGetItem or BatchWriteItem of which nothing
// was done.
func Unprocessed() Fault {
	return func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
		call, err := read(r)
		if err != nil {
			return nil, err
		}
		left := "UnprocessedKeys"
		if call.Operation == "BatchWriteItem" {
			left = "UnprocessedItems"
		}
		body, err := json.Marshal(map[string]any{left: call.Input["RequestItems"]})
		if err != nil {
			return nil, err
		}
		return response(r, http.StatusOK, "application/x-amz-json-1.0", body), nil
	}
}

// answerWith writes an error in the service's own form.
func answerWith(status int, code string, fields map[string]any) Fault {
	return func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
		if r.Header.Get("X-Amz-Target") == "" {
			body, err := xml.Marshal(s3Error{Code: code, Message: fmt.Sprint(fields["message"])})
			return response(r, status, "application/xml", body), err
		}
		all := map[string]any{"__type": "com.amazonaws#" + code}
		for name, value := range fields {
			all[name] = value
		}
		body, err := json.Marshal(all)
		return response(r, status, r.Header.Get("Content-Type"), body), err
	}
}

type s3Error struct {
	XMLName xml.Name `xml:"Error"`
	Code    string
	Message string
}

func response(r *http.Request, status int, contentType string, body []byte) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {contentType}, "X-Amzn-Requestid": {"made-up-by-a-test"}},
		Body:          io.NopCloser(strings.NewReader(string(body))),
		ContentLength: int64(len(body)),
		Request:       r,
	}
}
