package engines

import (
	"context"
	"log/slog"
	"net/http"
	"os/exec"
	"testing"

	"signalbox.dev/infra/reach"
)

// Launch starts an engine of a test's making.
func Launch(ctx context.Context, dir string, command func(port string) *exec.Cmd) error {
	running, err := program{name: "made-up", dir: dir, command: command}.start(ctx, "127.0.0.1")
	if err == nil {
		running.stop()
	}
	return err
}

// Front stands before an engine of a test's making.
func Front(t *testing.T, engine string) http.Handler {
	t.Helper()
	f, err := newFront("127.0.0.1", engine, make(chan error, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.server.Close() })
	return f.server.Handler
}

// Keep starts an engine of a test's making and starts it again when it ends.
func Keep(ctx context.Context, dir string, command func(port string) *exec.Cmd) (*Engines, error) {
	c := Config{Host: "127.0.0.1", Log: slog.New(slog.DiscardHandler)}
	running, err := program{name: "made-up", dir: dir, command: command}.start(ctx, c.Host)
	if err != nil {
		return nil, err
	}
	life, stopKeeping := context.WithCancel(ctx)
	e := &Engines{
		Engines:   reach.Engines{S3: running.url},
		processes: [len(services)]*process{running}, done: make(chan error, 1), stopKeeping: stopKeeping,
	}
	e.keepers.Go(func() { e.keep(life, 0, c) })
	return e, nil
}

// Kill ends the engine that Keep keeps.
func (e *Engines) Kill() error { return e.process(0).cmd.Process.Kill() }

// CheckDatabase checks the folder of a database.
var CheckDatabase = checkDatabase
