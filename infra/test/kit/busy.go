package kit

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Busy reports whether other programs take most of this machine: whether a thread that only
// computes gets less than a fifth of a core. It asks no product: one that hangs on an idle
// machine has no excuse. A test repeats once what failed on a busy machine. make test prints
// each such case, from the file SIGNALBOX_BUSY.
func Busy(t testing.TB, failed string) bool {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const enough = 20 * time.Millisecond // several slices of the scheduler
	start, used := time.Now(), threadTime()
	for threadTime()-used < enough {
		if time.Since(start) > 5*enough {
			note(t, failed)
			return true
		}
	}
	return false
}

// threadTime returns the CPU time of this thread. Where it cannot be read it is the time of
// the clock: no machine is busy there.
func threadTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD of Linux
	var usage syscall.Rusage
	if runtime.GOOS != "linux" || syscall.Getrusage(thread, &usage) != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func note(t testing.TB, failed string) {
	t.Helper()
	t.Logf("the machine is busy; repeated once: %s", failed)
	path := os.Getenv("SIGNALBOX_BUSY")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the caller's own path
	if err == nil {
		_, err = fmt.Fprintf(file, "%s: %.200s\n", t.Name(), failed)
		_ = file.Close()
	}
	if err != nil {
		t.Error(err)
	}
}
