package engines_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"signalbox.dev/infra/local/engines"
)

func TestAnEngineThatEndsAtOnceGetsOtherPorts(t *testing.T) {
	dir := t.TempDir()
	var ports []string
	err := engines.Launch(t.Context(), dir, func(port string) *exec.Cmd {
		ports = append(ports, port)
		return exec.Command("sh", "-c", "echo "+port+"; exit 1") //nolint:gosec // a port of ours
	})
	log := filepath.Join(dir, "made-up.log")
	if err == nil || !strings.Contains(err.Error(), log) || !strings.Contains(err.Error(), "it ended") {
		t.Errorf("%v, want that it ended and %s", err, log)
	}
	// What each of them said is kept.
	if said, err := os.ReadFile(log); err != nil || !slices.Equal(strings.Fields(string(said)), ports) { //nolint:gosec // a folder of the test
		t.Errorf("the log says %q, %v; want %q", said, err, ports)
	}
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 3 {
		t.Errorf("it was given the ports %q", ports)
	}
}

func TestAnEngineThatNeverAnswersIsEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	deaf := filepath.Join(t.TempDir(), "deaf")
	if err := syscall.Mkfifo(deaf, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = os.ReadFile(deaf) //nolint:gosec // returns once the engine does not hear SIGTERM
		cancel()
	}()
	var command *exec.Cmd
	err := engines.Launch(ctx, t.TempDir(), func(string) *exec.Cmd {
		command = exec.Command("sh", "-c", "trap '' TERM; echo >"+deaf+"; while :; do sleep 1000; done") //nolint:gosec // a path of ours
		return command
	})
	if err == nil || command.ProcessState == nil {
		t.Errorf("%v, and it ended: %v", err, command.ProcessState)
	}
}
