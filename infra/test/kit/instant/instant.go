// Package instant is a fake of AWS for benchmarks: every call succeeds at once, in the
// process.
package instant

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

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

// Measure measures a function with the event. Each response must have the status.
func Measure(b *testing.B, build func(*boot.Environment) lambda.Handler, e functest.Event, status string) {
	b.Helper()
	config := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), HTTPClient: services{}}
	handler := build(boot.NewEnvironment(config, slog.New(slog.NewJSONHandler(io.Discard, nil)), func(name string) string { return name }))
	event := e.As("sbx_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG").Payload()
	payload, want := make([]byte, len(event)), []byte(`"statusCode":`+status)
	b.ReportAllocs()
	for b.Loop() {
		copy(payload, event) // a handler overwrites its event
		response, err := handler.Invoke(b.Context(), payload)
		if err != nil || !bytes.Contains(response, want) {
			b.Fatalf("%v: %s", err, response)
		}
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
	default:
		return `{}`
	}
}
