package engines

import (
	"context"
	"net/http"
	"os/exec"
	"testing"

	"signalbox.dev/infra/testkit"
)

// Launch starts an engine of a test's making.
func Launch(ctx context.Context, dir string, command func(port string) *exec.Cmd) error {
	running, err := program{name: "made-up", dir: dir, command: command}.start(ctx)
	if err == nil {
		running.stop()
	}
	return err
}

// Front stands before an engine of a test's making.
func Front(t *testing.T, engine string) http.Handler {
	t.Helper()
	f, err := newFront(engine, make(chan error, 1))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = f.server.Close() })
	return f.server.Handler
}
