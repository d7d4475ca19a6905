package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"signalbox.dev/infra/testkit"
)

// start runs the authorizer of the example on another address. It returns after the first
// log line, or after the authorizer has ended.
func start(t *testing.T, listen string) (end func() error) {
	t.Helper()
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	example, folder := exampleConfig(t)
	file := filepath.Join(folder, "router.yaml")
	write(t, file, strings.Replace(example, "127.0.0.1:9180", listen, 1))
	ctx, stop := context.WithCancel(t.Context())
	lines, log := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, file, slog.New(slog.NewJSONHandler(log, nil)))
		_ = log.Close()
	}()
	bufio.NewScanner(lines).Scan()
	go func() { _, _ = io.Copy(io.Discard, lines) }() // otherwise later lines would block the authorizer
	return func() error { stop(); return <-ended }
}

// A killed authorizer leaves its socket, and the next one replaces it. A file of another
// kind stays.
func TestRunListensOnASocket(t *testing.T) {
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_PROFILE", "")
	path := filepath.Join(t.TempDir(), "socket")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	testkit.Must(t, err)
	left.SetUnlinkOnClose(false)
	testkit.Must(t, left.Close())
	end := start(t, "unix:"+path)
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://router/health", nil)
	testkit.Must(t, err)
	if response, err := client.Do(r); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("health: %v, %v", response, err)
	}
	client.CloseIdleConnections()
	if err := end(); err != nil {
		t.Error(err)
	}

	testkit.Must(t, os.WriteFile(path, []byte("a file"), 0o600))
	if err := start(t, "unix:"+path)(); err == nil {
		t.Error("it replaced a file with its socket")
	}
	if kept, err := os.Lstat(path); err != nil || !kept.Mode().IsRegular() {
		t.Errorf("the file is %v, %v", kept, err)
	}
}

func TestRunRefusesABadConfiguration(t *testing.T) {
	for _, c := range []struct{ region, profile, listen, complaint string }{
		{"us-east-1", "", "0.0.0.0:0", "router.yaml: listen: "},
		{"us-east-1", "nosuch", "127.0.0.1:0", "nosuch"},
		{"", "", "127.0.0.1:0", "AWS_REGION"},
	} {
		t.Setenv("AWS_REGION", c.region)
		t.Setenv("AWS_DEFAULT_REGION", "")
		t.Setenv("AWS_PROFILE", c.profile)
		if err := start(t, c.listen)(); err == nil || !strings.Contains(err.Error(), c.complaint) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
