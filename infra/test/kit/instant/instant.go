// Package instant is a fake of AWS for benchmarks: every call succeeds at once, in the
// process.
package instant

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"signalbox.dev/infra/test/awsmodel"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/boot"
)

// The values in the answers.
const (
	account   = "0a1b2c3d-0000-4000-8000-000000000001"
	Workspace = "0a1b2c3d-0000-4000-8000-000000000002"
	Job       = "0a1b2c3d-0000-4000-8000-000000000003"
	File      = "file_0123456789abcdef0123456789abcdef"
)

// Compare measures a function with the event, and then its AWS calls alone: it repeats
// the SDK calls that one request has made. Each response must have the status.
func Compare(b *testing.B, build func(*boot.Environment) lambda.Handler, e functest.Event, status string) {
	b.Helper()
	event := e.As("sbx_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG").Payload()
	config := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), HTTPClient: services{}}
	handle := func(options ...func(*middleware.Stack) error) func(context.Context) error {
		with := config
		with.APIOptions = options
		env := boot.NewEnvironment(with, slog.New(slog.NewJSONHandler(io.Discard, nil)), func(name string) string { return name })
		handler := build(env)
		payload, want := make([]byte, len(event)), []byte(`"statusCode":`+status)
		return func(ctx context.Context) error {
			copy(payload, event) // a handler overwrites its event
			answer, err := handler.Invoke(ctx, payload)
			if err == nil && !bytes.Contains(answer, want) {
				err = errors.New(string(answer))
			}
			return err
		}
	}
	var made recorder
	if err := handle(made.record)(b.Context()); err != nil {
		b.Fatal(err)
	}
	measure(b, "by=handler", handle())
	measure(b, "by=calls", made.replay(config))
}

func measure(b *testing.B, name string, request func(context.Context) error) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := request(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// recorder records the calls of a request.
type recorder struct {
	mu    sync.Mutex
	calls []call
}

type call struct {
	service, operation string
	input              any
}

// record adds the recorder to an SDK client.
func (r *recorder) record(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("record", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		r.mu.Lock()
		r.calls = append(r.calls, call{awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx), in.Parameters})
		r.mu.Unlock()
		return next.HandleInitialize(ctx, in)
	}), middleware.After)
}

// replay returns a function that makes the recorded calls, one after the other.
func (r *recorder) replay(config aws.Config) func(context.Context) error {
	clients := map[string]any{"DynamoDB": dynamodb.NewFromConfig(config), "KMS": kms.NewFromConfig(config), "S3": s3.NewFromConfig(config)}
	return func(ctx context.Context) error {
		for _, c := range r.calls {
			method := reflect.ValueOf(clients[c.service]).MethodByName(c.operation)
			if err, failed := method.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(c.input)})[1].Interface().(error); failed {
				return err
			}
		}
		return nil
	}
}

// services is an aws.HTTPClient.
type services struct{}

// Do implements aws.HTTPClient.
func (services) Do(r *http.Request) (*http.Response, error) {
	var request []byte
	if r.Body != nil {
		var err error
		if request, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	header := http.Header{"X-Amz-Request-Id": {"instant"}}
	if r.Method == http.MethodDelete {
		return awsmodel.Response(r, http.StatusNoContent, header, nil), nil
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return awsmodel.Response(r, http.StatusOK, header, []byte(answer(operation, request))), nil
}

// answer is the JSON that answers an operation, for the requested item or KMS key.
func answer(operation string, request []byte) string {
	var asked struct {
		KeyID string `json:"KeyId"`
		Key   json.RawMessage
	}
	_ = json.Unmarshal(request, &asked) // the SDK wrote it
	has := func(text string) bool { return bytes.Contains(request, []byte(text)) }
	item := func(attributes string) string {
		return `{"Item":{` + string(asked.Key[1:len(asked.Key)-1]) + `,"v":{"N":"1"},"account":{"S":"` + account + `"},"created_at":{"N":"1760000000"},` + attributes + `}}`
	}
	switch {
	case operation == "GetItem" && has("idem#"):
		return `{}`
	case operation == "GetItem" && has("job#"):
		return item(`"status":{"S":"running"},"started_at":{"N":"1760000001"}`)
	case operation == "GetItem" && has("workspace#"):
		return item(`"name":{"S":"w"}`)
	case operation == "GetItem":
		return item(`"kind":{"S":"management"},"name":{"S":"k"},"disabled":{"BOOL":false}`)
	case operation == "UpdateItem" && has("limit#"):
		return `{"Attributes":{"tat":{"N":"1"}}}`
	case operation == "UpdateItem":
		return `{"Attributes":{"next":{"M":{"openai":{"N":"1"}}},"made":{"N":"1"},"made_bytes":{"N":"1"}}}`
	case operation == "GenerateDataKey":
		const key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
		return `{"KeyId":"` + asked.KeyID + `","CiphertextBlob":"` + key + `","Plaintext":"` + key + `"}`
	case operation == "PutItem":
		return `{"ConsumedCapacity":{"CapacityUnits":1}}`
	case operation == "TransactWriteItems":
		return `{"ConsumedCapacity":[{"CapacityUnits":2}]}`
	default:
		return `{}`
	}
}
