package instant

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"

	"signalbox.dev/shared/boot"
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
	if method == "DELETE" {
		event["multiValueQueryStringParameters"] = map[string][]string{"workspace_id": {Workspace}}
	}
	encoded, _ := json.Marshal(event) // maps of text always encode
	return encoded
}

// Handler builds a function whose calls are answered at once.
func Handler(build func(*boot.Environment) lambda.Handler) lambda.Handler {
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	return build(boot.NewEnvironment(Config(), log, func(name string) string { return name }))
}

// Measure runs the handler on the event as often as the benchmark asks, and
// fails it where an answer is another than this status.
func Measure(b *testing.B, handler lambda.Handler, event []byte, status string) {
	b.Helper()
	payload := make([]byte, len(event))
	want := []byte(`"statusCode":` + status)
	b.ReportAllocs()
	for b.Loop() {
		copy(payload, event) // a handler overwrites its event
		answer, err := handler.Invoke(context.Background(), payload)
		if err != nil || !bytes.Contains(answer, want) {
			b.Fatalf("%s, %v", answer, err)
		}
	}
}

// MeasureCalls runs bare calls as often as the benchmark asks.
func MeasureCalls(b *testing.B, calls func(context.Context) error) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if err := calls(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
