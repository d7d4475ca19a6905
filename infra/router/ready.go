package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"signalbox.dev/shared/calls"
)

// probeTime is the time between two reads until the first one succeeds.
const probeTime = time.Second

// awaitStorage makes the authorizer ready once a read of both tables has succeeded. A later
// outage changes nothing: all instances would leave at once. It is a metric.
func (a *authorizer) awaitStorage(ctx context.Context) {
	for ctx.Err() == nil {
		table, err := a.reader.Probe(ctx)
		if err == nil {
			a.isReady.Store(true)
			a.log.Info("ready")
			return
		}
		a.log.LogAttrs(ctx, slog.LevelWarn, "not ready: a table cannot be read", slog.String("table", table), slog.Attr{Key: "error", Value: calls.Describe(err)})
		_ = calls.Wait(ctx, probeTime)
	}
}

// askReady asks the authorizer of this configuration whether it is ready.
func askReady(ctx context.Context, file string) error {
	at, err := readAddress(file)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: requestTime, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, at.network, at.name)
	}}}
	defer client.CloseIdleConnections()
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
