// Package instant is AWS for benchmarks: every call is answered at once, in the
// process, with the answer that a request that succeeds gets.
package instant

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"signalbox.dev/shared/boot"
)

// What the answers contain.
const (
	Account   = "0a1b2c3d-0000-4000-8000-000000000001"
	Workspace = "0a1b2c3d-0000-4000-8000-000000000002"
	Job       = "0a1b2c3d-0000-4000-8000-000000000003"
	File      = "file_0123456789abcdef0123456789abcdef"
	Token     = "sbx_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
	KeyARN    = "arn:aws:kms:us-east-1:000000000000:key/0a1b2c3d-0000-4000-8000-000000000004"
)

// Event is a proxy event for the operation, as JSON.
func Event(method, resource, body string, path map[string]string, header map[string]string) []byte {
	headers := map[string][]string{"Authorization": {"Bearer " + Token}, "Content-Type": {"application/json"}}
	for name, value := range header {
		headers[name] = []string{value}
	}
	event := map[string]any{
		"resource": resource, "httpMethod": method, "pathParameters": path, "multiValueHeaders": headers,
		"stageVariables": map[string]string{"deleteRatePerMinute": "1000000", "deleteBurst": "100000"},
		"requestContext": map[string]any{"requestId": "0a1b2c3d-0000-4000-8000-000000000005", "identity": map[string]string{"sourceIp": "192.0.2.1"}},
	}
	if body != "" {
		event["body"] = body
	}
	if method == http.MethodDelete {
		event["multiValueQueryStringParameters"] = map[string][]string{"workspace_id": {Workspace}}
	}
	encoded, _ := json.Marshal(event) // maps of text encode
	return encoded
}

// Compare measures a function, which gets the event as often as the benchmark asks,
// and its AWS calls alone, made bare. Each response must have the status. Both must
// make the same number of calls, or their comparison would mean nothing.
func Compare(b *testing.B, build func(*boot.Environment) lambda.Handler, event []byte, status string, bare func(context.Context, Calls) error) {
	b.Helper()
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	want := []byte(`"statusCode":` + status)
	handler := measure(b, "by=handler", func(config aws.Config) func(context.Context) error {
		handler := build(boot.NewEnvironment(config, log, func(name string) string { return name }))
		payload := make([]byte, len(event))
		return func(ctx context.Context) error {
			copy(payload, event) // a handler overwrites its event
			answer, err := handler.Invoke(ctx, payload)
			if err == nil && !bytes.Contains(answer, want) {
				err = errors.New(string(answer))
			}
			return err
		}
	})
	calls := measure(b, "by=calls", func(config aws.Config) func(context.Context) error {
		clients := newCalls(config)
		return func(ctx context.Context) error { return bare(ctx, clients) }
	})
	if handler != calls {
		b.Fatalf("the handler makes %v AWS calls, it is compared with %v", handler, calls)
	}
}

// measure returns how many calls to AWS one request makes.
func measure(b *testing.B, name string, requests func(aws.Config) func(context.Context) error) (calls float64) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		s := &services{}
		request := requests(aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), HTTPClient: s})
		b.ReportAllocs()
		for b.Loop() {
			if err := request(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		calls = float64(s.calls.Load()) / float64(b.N)
	})
	return calls
}

// services is an aws.HTTPClient that counts calls.
type services struct{ calls atomic.Int64 }

// Do implements aws.HTTPClient.
func (s *services) Do(r *http.Request) (*http.Response, error) {
	s.calls.Add(1)
	var request []byte
	if r.Body != nil {
		var err error
		if request, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	status, contentType, body := http.StatusNoContent, "application/xml", ""
	if r.Method != http.MethodDelete {
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		status, contentType, body = http.StatusOK, "application/x-amz-json-1.0", answer(operation, request)
	}
	return &http.Response{
		StatusCode: status, Request: r, Header: http.Header{"Content-Type": {contentType}, "X-Amz-Request-Id": {"instant"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// answer is the JSON that answers an operation: for an item under the key that
// was asked for, of the KMS key that was named.
func answer(operation string, request []byte) string {
	var asked struct {
		KeyID string `json:"KeyId"`
		Key   json.RawMessage
	}
	_ = json.Unmarshal(request, &asked) // the SDK wrote it
	has := func(text string) bool { return bytes.Contains(request, []byte(text)) }
	item := func(attributes string) string {
		return `{"Item":{` + string(asked.Key[1:len(asked.Key)-1]) + `,"v":{"N":"1"},"account":{"S":"` + Account + `"},"created_at":{"N":"1"},` + attributes + `}}`
	}
	switch {
	case operation == "GetItem" && has("idem#"):
		return `{}`
	case operation == "GetItem" && has("job#"):
		return item(`"status":{"S":"running"},"started_at":{"N":"2"}`)
	case operation == "GetItem" && has("workspace#"):
		return item(`"name":{"S":"w"}`)
	case operation == "GetItem":
		return item(`"kind":{"S":"management"},"name":{"S":"k"},"disabled":{"BOOL":false}`)
	case operation == "UpdateItem" && has("limit#"):
		return `{"Attributes":{"tat":{"N":"1"}}}`
	case operation == "UpdateItem":
		return `{"Attributes":{"next":{"M":{"openai":{"N":"1"}}}}}`
	case operation == "GenerateDataKey":
		const key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
		return `{"KeyId":"` + asked.KeyID + `","CiphertextBlob":"` + key + `","Plaintext":"` + key + `"}`
	default:
		return `{}`
	}
}
