package faults

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// Answer is an AWS error; the attempt does not reach the engine. The body is in the
// form of the service that was asked.
func Answer(status int, code, message string) Fault {
	return answerWith(status, code, map[string]any{"message": message})
}

// Throttle is the error of a service that throttles, under its own name for it.
// DynamoDB's has no reasons: see ThrottleFor.
func Throttle() Fault {
	return func(r *http.Request, apply Apply) (*http.Response, error) {
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

// ThrottleFor is DynamoDB's error for a throttled key range, table or account, with the
// reasons that distinguish them, such as "TableWriteKeyRangeThroughputExceeded".
func ThrottleFor(code string, reasons ...string) Fault {
	all := []map[string]string{}
	for _, reason := range reasons {
		all = append(all, map[string]string{"reason": reason, "resource": "arn:aws:dynamodb:us-east-1:000000000000:table/a-test-has-it"})
	}
	member := "ThrottlingReasons"
	if code == "ThrottlingException" {
		member = "throttlingReasons"
	}
	return answerWith(http.StatusBadRequest, code, map[string]any{"message": "Throughput exceeds the current capacity.", member: all})
}

// Conflict is DynamoDB's error for a plain write that meets a transaction on the
// same item.
func Conflict() Fault {
	return Answer(http.StatusBadRequest, "TransactionConflictException", "Transaction is ongoing for the item")
}

// CancellationReasons returns the codes with which DynamoDB cancels a transaction
// because of an item; an item without one has "None".
func CancellationReasons() []string {
	return []string{
		"ConditionalCheckFailed", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded",
		"RequestLimitExceeded", "ItemCollectionSizeLimitExceeded", "ValidationError",
	}
}

// Cancel is DynamoDB's error for a cancelled transaction, with a reason for each of
// its items.
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

// Unprocessed is the answer to a BatchGetItem or BatchWriteItem if nothing was
// processed.
func Unprocessed() Fault {
	return func(r *http.Request, _ Apply) (*http.Response, error) {
		call, err := read(r)
		if err != nil {
			return nil, err
		}
		left := map[string]string{"BatchGetItem": "UnprocessedKeys", "BatchWriteItem": "UnprocessedItems"}[call.Operation]
		return jsonResponse(r, map[string]any{left: call.Input["RequestItems"]})
	}
}

// UnprocessedRest is the answer to a BatchGetItem if only the first half of the keys,
// rounded up, was processed.
func UnprocessedRest() Fault {
	return func(r *http.Request, apply Apply) (*http.Response, error) {
		call, err := read(r)
		if err != nil {
			return nil, err
		}
		return after(func(_ *http.Request, answer *http.Response) (*http.Response, error) {
			var all struct {
				Responses map[string][]map[string]any
			}
			if err := json.NewDecoder(answer.Body).Decode(&all); err != nil {
				return nil, fmt.Errorf("reading the engine's answer: %w", err)
			}
			rest := map[string]any{}
			for table, asked := range object(call.Input["RequestItems"]) {
				keys := list(object(asked)["Keys"])
				left := keys[(len(keys)+1)/2:]
				all.Responses[table] = slices.DeleteFunc(all.Responses[table], func(item map[string]any) bool {
					return slices.ContainsFunc(left, func(key any) bool {
						return reflect.DeepEqual(item["pk"], object(key)["pk"]) && reflect.DeepEqual(item["sk"], object(key)["sk"])
					})
				})
				if len(left) > 0 {
					rest[table] = map[string]any{"Keys": left, "ConsistentRead": object(asked)["ConsistentRead"]}
				}
			}
			return jsonResponse(r, map[string]any{"Responses": all.Responses, "UnprocessedKeys": rest})
		})(r, apply)
	}
}

// RefuseVersions is S3's answer to a DeleteObjects if it deleted nothing: 200, with an
// error of that code for each version.
func RefuseVersions(code string) Fault {
	return func(r *http.Request, _ Apply) (*http.Response, error) {
		var asked struct {
			Objects []struct{ Key, VersionId string } `xml:"Object"` //nolint:staticcheck // S3's own spelling
		}
		if err := xml.NewDecoder(r.Body).Decode(&asked); err != nil {
			return nil, fmt.Errorf("reading a request: %w", err)
		}
		type refusal struct{ Key, VersionId, Code, Message string } //nolint:staticcheck // the same
		answer := struct {
			XMLName xml.Name  `xml:"DeleteResult"`
			Errors  []refusal `xml:"Error"`
		}{}
		for _, o := range asked.Objects {
			answer.Errors = append(answer.Errors, refusal{o.Key, o.VersionId, code, "as a test has it"})
		}
		written, err := xml.Marshal(answer)
		return response(r, http.StatusOK, "application/xml", written), err
	}
}

// Otherwise lets the engine apply the attempt and answers this instead.
func Otherwise(status int, body string) Fault {
	return after(func(r *http.Request, answer *http.Response) (*http.Response, error) {
		return response(r, status, answer.Header.Get("Content-Type"), []byte(body)), nil
	})
}

// Pretend answers this; the attempt does not reach the engine.
func Pretend(status int, body string) Fault {
	return func(r *http.Request, _ Apply) (*http.Response, error) {
		return response(r, status, "", []byte(body)), nil
	}
}

// AnotherItem is the answer to a GetItem that asked for another item.
func AnotherItem() Fault {
	return after(func(r *http.Request, answer *http.Response) (*http.Response, error) {
		var got struct{ Item map[string]any }
		if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
			return nil, fmt.Errorf("reading the engine's answer: %w", err)
		}
		if got.Item == nil {
			got.Item = map[string]any{}
		}
		got.Item["pk"] = map[string]string{"S": "another#1"}
		return jsonResponse(r, got)
	})
}

// answerWith returns an error in the service's own form.
func answerWith(status int, code string, fields map[string]any) Fault {
	return func(r *http.Request, _ Apply) (*http.Response, error) {
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

// jsonResponse is DynamoDB's answer of status 200.
func jsonResponse(r *http.Request, body any) (*http.Response, error) {
	encoded, err := json.Marshal(body)
	return response(r, http.StatusOK, "application/x-amz-json-1.0", encoded), err
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
