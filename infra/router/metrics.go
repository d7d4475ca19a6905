package main

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are for Prometheus. No label names a tenant.
type metrics struct {
	http.Handler

	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	opened   *prometheus.CounterVec
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
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 13), //nolint:mnd // 1 ms to 4 s
		}, []string{"path"}),
		opened: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_router_opened_total", Help: "Keys that were asked for, of credentials and of shared endpoints.",
		}, []string{"kind", "outcome"}),
	}
	kept := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "signalbox_router_kept_keys", Help: "Opened keys in memory."},
		func() float64 { return float64(keys()) })
	registry.MustRegister(m.requests, m.duration, m.opened, kept)
	return m
}

func (m *metrics) note(path string, status int, reason string, took time.Duration) {
	m.requests.WithLabelValues(path, strconv.Itoa(status), reason).Inc()
	m.duration.WithLabelValues(path).Observe(took.Seconds())
}
