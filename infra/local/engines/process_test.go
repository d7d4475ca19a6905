package engines_test

import (
	"context"
	"net"
	"net/http"
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

// A program that is faster on the port is not taken for the engine, which ends
// for want of it and gets another.
func TestAnotherProgramOnThePortIsNotTheEngine(t *testing.T) {
	starts := 0
	dir := t.TempDir()
	err := engines.Launch(t.Context(), dir, func(port string) *exec.Cmd {
		starts++
		if starts == 1 {
			other, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
			if err != nil {
				t.Error(err)
			}
			go func() { _ = http.Serve(other, http.NotFoundHandler()) }() //nolint:gosec // ends with the test
			t.Cleanup(func() { _ = other.Close() })
		}
		return exec.Command("../../../.build/objects", "-addr", net.JoinHostPort("127.0.0.1", port), "-dir", dir, "-access-key", "id", "-secret-key", "secret") //nolint:gosec // a binary of ours
	})
	if err != nil || starts != 2 {
		t.Errorf("%d starts, %v; want 2", starts, err)
	}
}

// An engine may have ended before its start was noticed.
func TestAnEngineThatEndsAtOnceIsStartedAgain(t *testing.T) {
	for range 50 {
		starts := 0
		if err := engines.Launch(t.Context(), t.TempDir(), func(string) *exec.Cmd {
			starts++
			return exec.Command("true")
		}); err == nil || starts != 3 {
			t.Fatalf("%d starts, %v; want 3", starts, err)
		}
	}
}
