package main

import (
	"context"
	"net/http"
	"strconv"
	"time"

	series "github.com/VictoriaMetrics/metrics"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"

	"signalbox.dev/shared/calls"
)

// metrics are for Prometheus, in its text format. No label names an account.
type metrics struct{ set *series.Set }

// newMetrics makes the metrics. keys returns the number of opened keys in memory.
func newMetrics(keys func() int) metrics {
	series.ExposeMetadata(true) // collectors that need a metric's type drop one without it
	m := metrics{series.NewSet()}
	m.set.NewGauge("signalbox_router_kept_keys", func() float64 { return float64(keys()) })
	return m
}

// ServeHTTP implements http.Handler. It adds those of Go and of the process.
func (m metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	m.set.WritePrometheus(w)
	series.WriteProcessMetrics(w)
	series.WriteFDMetrics(w)
}

// seconds are the upper bounds of a histogram, from 1 ms to 4 s.
var seconds = series.ExponentialBuckets(0.001, 2, 13)

// watch is an API option for SDK clients: it counts and times each attempt of a call. The
// outcome is ok, or AWS's code.
func (m metrics) watch(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("WatchAttempts",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			began, outcome := time.Now(), "ok"
			out, metadata, err := next.HandleFinalize(ctx, in)
			if err != nil {
				outcome = calls.Code(err)
			}
			name := `signalbox_router_aws_call_seconds{operation="` + awsmiddleware.GetOperationName(ctx) + `",outcome=` + strconv.Quote(outcome) + `,service="` + awsmiddleware.GetServiceID(ctx) + `"}`
			m.set.GetOrCreatePrometheusHistogramExt(name, seconds).UpdateDuration(began)
			return out, metadata, err
		}), "Retry", middleware.After)
}

// decided counts and times a response to a router. The reason is that of a refusal, or ok.
func (m metrics) decided(path string, status int, reason string, began time.Time) {
	m.set.GetOrCreateCounter(`signalbox_router_decisions_total{path="` + path + `",reason="` + reason + `",status="` + strconv.Itoa(status) + `"}`).Inc()
	m.set.GetOrCreatePrometheusHistogramExt(`signalbox_router_request_seconds{path="`+path+`"}`, seconds).UpdateDuration(began)
}

// opened counts a key that was asked for, of a credential or of a shared endpoint.
func (m metrics) opened(kind, outcome string) {
	m.set.GetOrCreateCounter(`signalbox_router_opened_total{kind="` + kind + `",outcome="` + outcome + `"}`).Inc()
}
