package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// Uninterrupted runs the test again in a process that preempts no goroutine, and
// returns true in that process. Preemption saves a goroutine's registers on its
// stack. If that happens in the middle of a copy, a part of the secret stays there.
func Uninterrupted(t *testing.T) bool {
	t.Helper()
	const setting = "asyncpreemptoff=1"
	if os.Getenv("GODEBUG") == setting {
		return true
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$") //nolint:gosec // this test's own binary
	command.Env = append(os.Environ(), "GODEBUG="+setting)
	output, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, output)
	}
	return false
}

// Heap returns every object of the heap, garbage included, in the runtime's own
// format. What the garbage collector has freed is not in it: a test that looks for
// copies of a secret turns the collector off first.
func Heap(t testing.TB) []byte {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "heap"))
	Must(t, err)
	defer func() { _ = f.Close() }() // it is only read from now on
	debug.WriteHeapDump(f.Fd())
	dump, err := os.ReadFile(f.Name())
	Must(t, err)
	return dump
}
