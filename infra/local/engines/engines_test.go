package engines_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"signalbox.dev/infra/local/engines"
	"signalbox.dev/infra/reach"
	"signalbox.dev/infra/testkit"
)

func start(t *testing.T, c engines.Config) *engines.Engines {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	running, err := engines.Start(t.Context(), c)
	testkit.Must(t, err)
	t.Cleanup(func() { stop(t, running) })
	return running
}

func stop(t *testing.T, e *engines.Engines) {
	t.Helper()
	testkit.Must(t, e.Close())
}

// The engines go on after an unsigned request: a Lambda function opens its connections
// with one.
func TestUnsignedRequests(t *testing.T) {
	e := start(t, engines.Config{})
	for _, url := range []string{e.DynamoDB, e.S3, e.KMS} {
		answer, err := http.Get(url) //nolint:gosec // an engine of ours
		testkit.Must(t, err)
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Error(err)
		}
		_ = answer.Body.Close()
	}
	config := e.Config()
	_, tables := reach.DynamoDB(config).ListTables(t.Context(), nil)
	_, buckets := reach.S3(config).ListBuckets(t.Context(), nil)
	_, keys := reach.KMS(config).CreateKey(t.Context(), nil)
	testkit.Must(t, errors.Join(tables, buckets, keys))
}

func TestAMissingEngineIsNamed(t *testing.T) {
	e, err := engines.Start(t.Context(), engines.Config{Root: t.TempDir(), Dir: t.TempDir()})
	if err == nil {
		stop(t, e)
	}
	if err == nil || !strings.Contains(err.Error(), "make engines") {
		t.Errorf("%v, want how to get the engine", err)
	}
}

// An engine that ends at once, perhaps before its start was noticed, is started
// twice more, on other ports; the output of each start is kept.
func TestAnEngineThatEndsAtOnceGetsOtherPorts(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		var ports []string
		err := engines.Launch(t.Context(), dir, func(port string) *exec.Cmd {
			ports = append(ports, port)
			return exec.Command("echo", port) //nolint:gosec // a port of ours
		})
		log := filepath.Join(dir, "made-up.log")
		if err == nil || !strings.Contains(err.Error(), log) || !strings.HasSuffix(err.Error(), ": it ended") {
			t.Fatalf("%v, want that it ended and %s", err, log)
		}
		if output, err := os.ReadFile(log); err != nil || !slices.Equal(strings.Fields(string(output)), ports) { //nolint:gosec // a folder of the test
			t.Fatalf("the log contains %q, %v; want %q", output, err, ports)
		}
		slices.Sort(ports)
		if len(slices.Compact(ports)) != 3 {
			t.Fatalf("started on the ports %q", ports)
		}
	}
}

func TestAnEngineThatNeverAnswersIsEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready := filepath.Join(t.TempDir(), "ready")
	testkit.Must(t, syscall.Mkfifo(ready, 0o600))
	go func() {
		_, _ = os.ReadFile(ready) //nolint:gosec // returns once the engine ignores SIGTERM
		cancel()
	}()
	var command *exec.Cmd
	err := engines.Launch(ctx, t.TempDir(), func(string) *exec.Cmd {
		command = exec.Command("sh", "-c", "trap '' TERM; echo >"+ready+"; while :; do sleep 1000; done") //nolint:gosec // a path of ours
		return command
	})
	if err == nil || command.ProcessState == nil {
		t.Errorf("%v, and it ended: %v", err, command.ProcessState)
	}
}

// The engine gets a whole request, and finishes it, when the caller is gone:
// ExtendDB would keep its database locked.
func TestTheEngineFinishesARequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cancel()
		_, _ = io.Copy(w, r.Body)
	}))
	defer engine.Close()
	answer := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader("a whole request"))
	engines.Front(t, engine.URL).ServeHTTP(answer, request)
	if got := answer.Body.String(); got != "a whole request" {
		t.Errorf("the engine answered %q", got)
	}
}
