package engines

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"testing"
)

// An engine that ends at each start is an error, and Close then has nothing to wait for.
func TestAnEngineThatNeverStartsIsAnError(t *testing.T) {
	e := &Engines{log: slog.New(slog.DiscardHandler), done: make(chan error, 1)}
	e.life, e.end = context.WithCancel(t.Context())
	at, err := e.start(t.Context(), program{name: "engine", dir: t.TempDir(), command: func(ctx context.Context, _ string) *exec.Cmd {
		return exec.CommandContext(ctx, "false")
	}})
	if !errors.Is(err, errEnded) {
		t.Errorf("started at %q: %v", at, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
