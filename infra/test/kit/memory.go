package kit

import (
	"bytes"
	"crypto/rand"
	"fmt"
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
	// Under the race detector a process sleeps for a second as it ends.
	command.Env = append(os.Environ(), "GODEBUG="+setting, "GORACE=atexit_sleep_ms=0")
	output, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, output)
	}
	return false
}

// Heap returns every object of the heap, garbage included, in the runtime's own
// format. It lacks objects that the garbage collector has freed, so a test that looks
// for copies of a secret turns the collector off first.
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

// Masked is a random secret with its bits inverted. A test keeps it in this form, so a
// search of the heap for the secret does not find the test's own copy.
type Masked []byte

// NewMasked returns a secret with this number of letters.
func NewMasked(length int) Masked {
	m := make(Masked, length)
	_, _ = rand.Read(m) // it never fails
	for i, b := range m {
		m[i] = ^('a' + b%26)
	}
	return m
}

// Append writes the secret.
func (m Masked) Append(to []byte) []byte {
	for _, b := range m {
		to = append(to, ^b)
	}
	return to
}

// AppendEscaped writes the secret in JSON's escapes.
func (m Masked) AppendEscaped(to []byte) []byte {
	for _, b := range m {
		to = fmt.Appendf(to, `\u%04x`, ^b)
	}
	return to
}

// Copies counts the copies of the secret, plain and escaped, in the dump of a heap.
// For a long secret it searches for a few fragments and counts the most frequent.
func (m Masked) Copies(dump []byte) (found int) {
	const fragment = 16 // letters that count as a copy
	plain, escaped := m.Append(make([]byte, 0, len(m))), m.AppendEscaped(make([]byte, 0, 6*len(m)))
	defer clear(plain) // they are on the heap themselves
	defer clear(escaped)
	for at := 0; at+fragment <= len(m); at += max(fragment, len(m)/4) {
		found = max(found, bytes.Count(dump, plain[at:at+fragment])+bytes.Count(dump, escaped[6*at:6*(at+fragment)]))
	}
	return found
}
