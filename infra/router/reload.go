package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/routing"
)

// handler is the authorizer of the configuration that counts now. Metrics and readiness
// outlive a configuration.
type handler struct {
	file    string
	aws     aws.Config
	metrics *metrics
	log     *slog.Logger

	current atomic.Pointer[authorizer]
	isReady atomic.Bool
}

func newHandler(file string, c config, clients aws.Config, log *slog.Logger) (*handler, error) {
	h := &handler{file: file, aws: clients, log: log}
	h.metrics = newMetrics(func() int { return h.current.Load().reader.Kept() })
	h.aws.APIOptions = append(h.aws.APIOptions, h.metrics.watch)
	return h, h.use(c)
}

func (h *handler) use(c config) error {
	reader, err := routing.NewReader(dynamodb.NewFromConfig(h.aws), kms.NewFromConfig(h.aws), routing.Config{
		AccessTable: c.Stack.AccessTable, CredentialsTable: c.Stack.CredentialsTable,
		SealingKeyARNs: c.Stack.sealingKeys(), Keys: c.MaxKeys,
	})
	if err != nil {
		return err
	}
	for name, p := range c.Providers {
		if byok.FormOf(p.key.Reveal()) == byok.Odd {
			h.log.Warn("the platform's key looks as if something was pasted around it", "provider", name)
		}
	}
	h.current.Store(&authorizer{config: c, reader: reader, metrics: h.metrics, log: h.log})
	return nil
}

// reloadAfter reloads after each signal.
func (h *handler) reloadAfter(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-signals:
			h.reload()
		case <-ctx.Done():
			return
		}
	}
}

// reload reads the configuration again. It counts if it and the files that it names are
// whole; else the old one goes on. Requests under way end with the old one.
func (h *handler) reload() {
	old := h.current.Load()
	if err := h.replace(old.config); err != nil {
		h.metrics.reloads.WithLabelValues("refused").Inc()
		h.log.Error("the configuration is not changed", "error", err.Error())
		return
	}
	h.metrics.reloads.WithLabelValues("ok").Inc()
	h.log.Info("the configuration is read again")
	time.AfterFunc(2*requestTime, func() { //nolint:mnd // no request uses it any more
		old.reader.Close()
		old.config.wipe()
	})
}

func (h *handler) replace(old config) error {
	c, err := readConfig(h.file)
	if err != nil {
		return err
	}
	if c.Listen != old.Listen || c.ListenMode != old.ListenMode || c.ListenOwner != old.ListenOwner || c.MaxConnections != old.MaxConnections {
		c.wipe()
		return errors.New("listen and max_connections: a change needs a restart")
	}
	if err := h.use(c); err != nil {
		c.wipe()
		return err
	}
	return nil
}

// ServeHTTP implements http.Handler. It does not use http.ServeMux, which redirects
// paths that are not clean.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/metrics":
		h.metrics.ServeHTTP(w, r)
	case r.Method == http.MethodGet && r.URL.Path == "/health":
		w.WriteHeader(http.StatusOK)
	case r.Method == http.MethodGet && r.URL.Path == "/ready":
		if h.isReady.Load() {
			w.WriteHeader(http.StatusOK)
		} else {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	default:
		h.current.Load().ServeHTTP(w, r)
	}
}

// probeTime is the time between two reads until the first one succeeds.
const probeTime = time.Second

// awaitStorage makes the handler ready once a read of DynamoDB has succeeded. A later outage
// changes nothing: all instances would leave at once. It is a metric.
func (h *handler) awaitStorage(ctx context.Context) {
	for ctx.Err() == nil {
		_, err := h.current.Load().reader.Identify(ctx, auth.HashKey("ready"))
		if _, isRead := errors.AsType[*auth.Rejection](err); isRead { // no key has this hash
			h.isReady.Store(true)
			h.log.Info("ready")
			return
		}
		h.log.LogAttrs(ctx, slog.LevelWarn, "not ready: DynamoDB cannot be read", slog.Attr{Key: "error", Value: calls.Describe(err)})
		select {
		case <-ctx.Done():
		case <-time.After(probeTime):
		}
	}
}

// askReady asks the authorizer of this configuration whether it is ready, until it is or
// the time has passed.
func askReady(ctx context.Context, file string, wait time.Duration) error {
	at, err := readAddress(file)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: requestTime, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, at.network, at.name)
	}}}
	defer client.CloseIdleConnections()
	for deadline := time.Now().Add(wait); ; {
		if err = getReady(ctx, &client); err == nil || time.Now().After(deadline) {
			return err
		}
		if calls.Wait(ctx, probeTime/10) != nil { //nolint:mnd // while it starts
			return err
		}
	}
}

func getReady(ctx context.Context, client *http.Client) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://router/ready", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil || response.StatusCode == http.StatusOK {
		return err
	}
	return fmt.Errorf("not ready: %s", response.Status)
}
