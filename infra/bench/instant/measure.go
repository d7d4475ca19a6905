package instant

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"

	"signalbox.dev/shared/boot"
)

// Measure builds a function whose calls are answered at once, hands it the event
// as often as the benchmark asks, and fails the benchmark where an answer is
// another than this status.
func Measure(b *testing.B, build func(*boot.Environment) lambda.Handler, event []byte, status string) {
	b.Helper()
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	var s services
	handler := build(boot.NewEnvironment(s.config(), log, func(name string) string { return name }))
	payload := make([]byte, len(event))
	want := []byte(`"statusCode":` + status)
	measure(b, &s, func() {
		copy(payload, event) // a handler overwrites its event
		answer, err := handler.Invoke(context.Background(), payload)
		if err != nil || !bytes.Contains(answer, want) {
			b.Fatalf("%s, %v", answer, err)
		}
	})
}

// MeasureCalls makes bare calls as often as the benchmark asks.
func MeasureCalls(b *testing.B, calls func(context.Context, Calls) error) {
	b.Helper()
	var s services
	clients := newCalls(s.config())
	measure(b, &s, func() {
		if err := calls(context.Background(), clients); err != nil {
			b.Fatal(err)
		}
	})
}

func measure(b *testing.B, s *services, act func()) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		act()
	}
	b.ReportMetric(float64(s.asked.Load())/float64(b.N), "calls/op")
}
