package testkit

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

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
