package main

import (
	"context"
	"net/http"
	"strconv"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"signalbox.dev/shared/calls"
)

// metrics are for Prometheus. No label names an account.
type metrics struct {
	http.Handler

	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	opened   *prometheus.CounterVec
	aws      *prometheus.HistogramVec
}

// newMetrics makes the metrics. keys returns the number in memory.
func newMetrics(keys func() int) *metrics {
	registry := prometheus.NewRegistry()
	m := &metrics{
		Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_router_decisions_total", Help: "Responses to a router, by the reason of a refusal.",
		}, []string{"path", "status", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "signalbox_router_request_seconds", Help: "Time to answer a router.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 13), // 1 ms to 4 s
		}, []string{"path"}),
		opened: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_router_opened_total", Help: "Keys that were asked for, of credentials and of shared endpoints.",
		}, []string{"kind", "outcome"}),
		aws: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "signalbox_router_aws_call_seconds", Help: "Time of each attempt of a call to AWS, by its outcome: ok, or AWS's code.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 13), // 1 ms to 4 s
		}, []string{"service", "operation", "outcome"}),
	}
	kept := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "signalbox_router_kept_keys", Help: "Opened keys in memory."},
		func() float64 { return float64(keys()) })
	registry.MustRegister(m.requests, m.duration, m.opened, m.aws, kept,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watch is an API option for SDK clients: it counts and times each attempt of a call.
func (m *metrics) watch(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("WatchAttempts",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			began, outcome := time.Now(), "ok"
			out, metadata, err := next.HandleFinalize(ctx, in)
			if err != nil {
				outcome = calls.Code(err)
			}
			m.aws.WithLabelValues(awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx), outcome).Observe(time.Since(began).Seconds())
			return out, metadata, err
		}), "Retry", middleware.After)
}

func (m *metrics) note(path string, status int, reason string, took time.Duration) {
	m.requests.WithLabelValues(path, strconv.Itoa(status), reason).Inc()
	m.duration.WithLabelValues(path).Observe(took.Seconds())
}
