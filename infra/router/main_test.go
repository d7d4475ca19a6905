package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
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

// A new authorizer takes over the socket of one that serves, and every connection is served.
// Its mode is the umask's. A file of another kind stays.
func TestRunListensOnASocket(t *testing.T) {
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_PROFILE", "")
	path := filepath.Join(t.TempDir(), "socket")
	end := func() error { return nil }
	defer syscall.Umask(syscall.Umask(0o007))
	for range 2 {
		old := end
		end = start(t, "unix:"+path)
		kit.Must(t, old())
		if info, err := os.Lstat(path); err != nil || info.Mode() != os.ModeSocket|0o770 {
			t.Errorf("%v, %v", info, err)
		}
		// It serves: nobody reads DynamoDB here, so it is not ready.
		file := filepath.Join(t.TempDir(), "router.yaml")
		write(t, file, "listen: unix:"+path)
		if err := askReady(t.Context(), file); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("through the socket: %v", err)
		}
	}
	kit.Must(t, end())
	if files, err := os.ReadDir(filepath.Dir(path)); len(files) != 1 || err != nil {
		t.Errorf("beside the socket: %v, %v", files, err)
	}
	kit.Must(t, os.Remove(path))
	write(t, path, "a file")
	if err := start(t, "unix:"+path)(); err == nil {
		t.Error("it replaced a file with its socket")
	}
	if kept, err := os.Lstat(path); err != nil || !kept.Mode().IsRegular() {
		t.Errorf("the file is %v, %v", kept, err)
	}
}

func TestRunNeedsARegion(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	if err := start(t, "127.0.0.1:0")(); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("without a region: %v", err)
	}
}

// The authorizer is ready once a read of both tables has succeeded, and stays so.
func TestReady(t *testing.T) {
	f := newFixture(t)
	text, err := os.ReadFile(f.file)
	kit.Must(t, err)
	write(t, f.file, strings.Replace(string(text), "127.0.0.1:0", f.address, 1))
	for operation, table := range map[string]string{"GetItem": f.engines.Tables.Access, "Query": f.engines.Tables.Credentials} {
		ctx, stop := context.WithCancel(t.Context())
		f.faults.Inject(faults.Rule{Operation: operation, Fault: func(r *http.Request, apply faults.Apply) (*http.Response, error) {
			stop()
			return faults.Refuse()(r, apply)
		}})
		f.authorizer.awaitStorage(ctx) // it ends with the process
		f.faults.Heal()
		if log := f.log.String(); !strings.Contains(log, `"table":"`+table+`"`) {
			t.Errorf("without %s: logged %s", operation, log)
		}
	}
	if err := askReady(t.Context(), f.file); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("without DynamoDB: %v", err)
	}
	f.authorizer.awaitStorage(t.Context())
	f.faults.Inject(faults.Rule{Operation: "GetItem", Fault: faults.Refuse()})
	if err := askReady(t.Context(), f.file); err != nil {
		t.Errorf("after one read: %v", err)
	}
	// A fault for which a start is refused does not stop the one that serves.
	damaged := filepath.Join(t.TempDir(), "router.yaml")
	write(t, damaged, "listen: "+f.address+"\nname_keys_file: none\nunknown: true\n")
	if err := askReady(t.Context(), damaged); err != nil {
		t.Errorf("with a damaged configuration: %v", err)
	}
	if err := askReady(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("without a configuration")
	}
}

// An image FROM scratch has no root certificates: the binary has its own.
func TestRootCertificatesWithoutASystem(t *testing.T) {
	if os.Getenv("SSL_CERT_DIR") != t.Name() {
		here := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$") //nolint:gosec // this test
		here.Env = append(os.Environ(), "SSL_CERT_DIR="+t.Name(), "SSL_CERT_FILE="+t.Name(), "GORACE=atexit_sleep_ms=0")
		if out, err := here.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	roots, err := x509.SystemCertPool()
	if err != nil || roots.Equal(x509.NewCertPool()) {
		t.Errorf("there are no roots: %v", err)
	}
}
