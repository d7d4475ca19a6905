package faults

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing/iotest"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/infra/test/awsmodel"
)

// Refuse fails the attempt like a refused connection, before it reaches the engine.
func Refuse() Fault { return before(syscall.ECONNREFUSED) }

// TimeOut fails the attempt with the time-out of attempts, before it reaches the
// engine. The request itself has time left.
func TimeOut() Fault { return before(os.ErrDeadlineExceeded) }

// before fails the attempt with the error before it reaches the engine.
func before(err error) Fault {
	return func(r *http.Request, _ Apply) (*http.Response, error) { return nil, networkError(r, err) }
}

// networkError is an error of the network as an http.Client returns it.
func networkError(r *http.Request, err error) error {
	return &url.Error{Op: "Post", URL: r.URL.String(), Err: &net.OpError{Op: "read", Net: "tcp", Err: err}}
}

// Answer is an AWS error; the attempt does not reach the engine. The body has the form
// of the request's service.
func Answer(status int, code, message string) Fault {
	return answer(&awsmodel.Error{Status: status, Code: code, Message: message})
}

func answer(e *awsmodel.Error) Fault {
	return func(r *http.Request, _ Apply) (*http.Response, error) { return awsmodel.Answer(r, e), nil }
}

// Throttle is the error of a service that throttles. DynamoDB's has no reasons here:
// see ThrottleFor.
func Throttle() Fault {
	return func(r *http.Request, apply Apply) (*http.Response, error) {
		fault := Answer(http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
		switch service, _, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); service {
		case "DynamoDB_20120810":
			fault = Answer(http.StatusBadRequest, "ProvisionedThroughputExceededException", "The level of configured provisioned throughput was exceeded.")
		case "TrentService":
			fault = Answer(http.StatusBadRequest, "ThrottlingException", "You have exceeded the rate at which you may call KMS.")
		}
		return fault(r, apply)
	}
}

// ThrottleFor is DynamoDB's error for a throttled key range, table or account, with
// reasons such as "TableWriteKeyRangeThroughputExceeded".
func ThrottleFor(code string, reasons ...string) Fault {
	all := []map[string]string{}
	for _, reason := range reasons {
		all = append(all, map[string]string{"reason": reason, "resource": "arn:aws:dynamodb:us-east-1:000000000000:table/a-test-has-it"})
	}
	member := "ThrottlingReasons"
	if code == "ThrottlingException" {
		member = "throttlingReasons"
	}
	return answer(&awsmodel.Error{
		Status: http.StatusBadRequest, Code: code, Message: "Throughput exceeds the current capacity.", Members: map[string]any{member: all},
	})
}

// Cancel is DynamoDB's error for a cancelled transaction, with a reason for each of
// its items.
func Cancel(reasons ...string) Fault {
	var all []map[string]any
	for _, code := range reasons {
		all = append(all, map[string]any{"Code": code, "Message": "as a test has it"})
	}
	return answer(awsmodel.Cancelled(all...))
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
		return respond(r, map[string]any{left: call.Input["RequestItems"]})
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
		return changed(func(all map[string]any) {
			rest := map[string]any{}
			for table, asked := range object(call.Input["RequestItems"]) {
				keys := list(object(asked)["Keys"])
				left := keys[(len(keys)+1)/2:]
				responses := object(all["Responses"])
				responses[table] = slices.DeleteFunc(list(responses[table]), func(item any) bool {
					return slices.ContainsFunc(left, func(key any) bool {
						return reflect.DeepEqual(object(item)["pk"], object(key)["pk"]) && reflect.DeepEqual(object(item)["sk"], object(key)["sk"])
					})
				})
				if len(left) > 0 {
					rest[table] = map[string]any{"Keys": left, "ConsistentRead": object(asked)["ConsistentRead"]}
				}
			}
			all["UnprocessedKeys"] = rest
		})(r, apply)
	}
}

// object and list return the value, or nothing if it has another type.
func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// AnotherItem is the answer to a GetItem that asked for another item.
func AnotherItem() Fault {
	return changed(func(got map[string]any) {
		if got["Item"] == nil {
			got["Item"] = map[string]any{}
		}
		object(got["Item"])["pk"] = map[string]string{"S": "another#1"}
	})
}

// changed lets the engine apply the attempt, and change its answer in JSON.
func changed(change func(map[string]any)) Fault {
	return after(func(r *http.Request, answer *http.Response) (*http.Response, error) {
		var got map[string]any
		if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
			return nil, fmt.Errorf("reading the engine's answer: %w", err)
		}
		change(got)
		return respond(r, got)
	})
}

// RefuseVersions answers a DeleteObjects with 200 and an error of that code for each
// version. Nothing is deleted.
func RefuseVersions(code string) Fault {
	return func(r *http.Request, _ Apply) (*http.Response, error) {
		var asked struct {
			Objects []types.ObjectIdentifier `xml:"Object"`
		}
		if err := xml.NewDecoder(r.Body).Decode(&asked); err != nil {
			return nil, fmt.Errorf("reading a request: %w", err)
		}
		answer := struct {
			XMLName xml.Name      `xml:"DeleteResult"`
			Errors  []types.Error `xml:"Error"`
		}{}
		message := "as a test has it"
		for _, o := range asked.Objects {
			answer.Errors = append(answer.Errors, types.Error{Key: o.Key, VersionId: o.VersionId, Code: &code, Message: &message})
		}
		written, err := xml.Marshal(answer)
		return response(r, http.StatusOK, "application/xml", written), err
	}
}

// Pretend gives this answer; the attempt does not reach the engine.
func Pretend(status int, body string) Fault {
	return func(r *http.Request, _ Apply) (*http.Response, error) {
		return response(r, status, "", []byte(body)), nil
	}
}

// Otherwise lets the engine apply the attempt and gives this answer instead.
func Otherwise(status int, body string) Fault {
	return after(func(r *http.Request, answer *http.Response) (*http.Response, error) {
		return response(r, status, answer.Header.Get("Content-Type"), []byte(body)), nil
	})
}

// LoseAnswer lets the engine apply the attempt and then resets the connection.
func LoseAnswer() Fault { return lose(syscall.ECONNRESET) }

// TimeOutAnswer lets the engine apply the attempt and fails it by the time-out of
// attempts.
func TimeOutAnswer() Fault { return lose(os.ErrDeadlineExceeded) }

func lose(err error) Fault {
	return after(func(r *http.Request, _ *http.Response) (*http.Response, error) { return nil, networkError(r, err) })
}

// CutAnswer lets the engine apply the attempt and cuts the connection half way through
// the answer's body. Without a body, it cuts the connection before the answer is
// complete.
func CutAnswer() Fault {
	return after(func(r *http.Request, answer *http.Response) (*http.Response, error) {
		body, err := io.ReadAll(answer.Body)
		if err != nil || len(body) == 0 {
			return nil, networkError(r, syscall.ECONNRESET)
		}
		answer.Body = io.NopCloser(io.MultiReader(strings.NewReader(string(body[:len(body)/2])), iotest.ErrReader(io.ErrUnexpectedEOF)))
		return answer, nil
	})
}

// Garble lets the engine apply the attempt and makes the answer unreadable.
func Garble() Fault {
	return after(func(r *http.Request, answer *http.Response) (*http.Response, error) {
		body, err := io.ReadAll(answer.Body)
		if err != nil || len(body) == 0 {
			return nil, &url.Error{Op: "Post", URL: r.URL.String(), Err: errors.New(`net/http: HTTP/1.x transport connection broken: malformed HTTP response "\x00\x00"`)}
		}
		return response(r, answer.StatusCode, answer.Header.Get("Content-Type"), []byte("<{[\x00"+string(body[:len(body)/2]))), nil
	})
}

// EmptyAnswer lets the engine apply the attempt and removes the body of its answer;
// an error is lost as a whole.
func EmptyAnswer() Fault {
	return after(func(r *http.Request, answer *http.Response) (*http.Response, error) {
		if answer.StatusCode >= http.StatusMultipleChoices {
			return nil, networkError(r, syscall.ECONNRESET)
		}
		_ = answer.Body.Close()
		answer.Header.Del("X-Amz-Crc32") // the SDK would notice the change by this header
		answer.Body, answer.ContentLength = http.NoBody, -1
		return answer, nil
	})
}

// NoHeaders lets the engine apply the attempt and removes all headers of its answer.
func NoHeaders() Fault {
	return after(func(_ *http.Request, answer *http.Response) (*http.Response, error) {
		answer.Header = http.Header{}
		return answer, nil
	})
}

// Then lets the engine apply the attempt and calls f before it returns the answer. So
// f runs between two calls of a request.
func Then(f func()) Fault {
	return after(func(_ *http.Request, answer *http.Response) (*http.Response, error) {
		f()
		return answer, nil
	})
}

// after lets the engine apply the attempt, and f change the answer.
func after(f func(*http.Request, *http.Response) (*http.Response, error)) Fault {
	return func(r *http.Request, apply Apply) (*http.Response, error) {
		answer, err := apply()
		if err != nil {
			return nil, fmt.Errorf("the engine itself failed: %w", err)
		}
		changed, err := f(r, answer)
		if changed != answer {
			_ = answer.Body.Close()
		}
		return changed, err
	}
}

// respond is DynamoDB's answer of status 200.
func respond(r *http.Request, body any) (*http.Response, error) {
	encoded, err := json.Marshal(body)
	return response(r, http.StatusOK, "application/x-amz-json-1.0", encoded), err
}

func response(r *http.Request, status int, contentType string, body []byte) *http.Response {
	return awsmodel.Response(r, status, http.Header{"Content-Type": {contentType}, "X-Amzn-Requestid": {"made-up-by-a-test"}}, body)
}
