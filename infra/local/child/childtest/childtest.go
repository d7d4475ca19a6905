// Package childtest reports the children of a process, from Linux's /proc. Only
// tests import it.
package childtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds how long AwaitEnd waits.
const patience = time.Minute

// Of returns the children of a process.
func Of(t testing.TB, pid int) []int {
	t.Helper()
	// Each thread lists the children that it started.
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(lists) == 0 {
		t.Errorf("process %d cannot be looked at: %v", pid, err)
	}
	var children []int
	for _, list := range lists {
		// A thread may have ended, and with it its list.
		text, _ := os.ReadFile(list) //nolint:gosec // of /proc
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Error(err)
			}
			children = append(children, child)
		}
	}
	return children
}

// Program returns the path of the program that a process runs.
func Program(pid int) string {
	// An error means that the process is not there.
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	program, _, _ := strings.Cut(string(line), "\x00")
	return program
}

// AwaitEnd waits until the processes have ended, waited for or not.
func AwaitEnd(t testing.TB, pids []int) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for _, pid := range pids {
		process, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		ended := 0
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			ended, err = unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, int(time.Until(deadline).Milliseconds())) //nolint:gosec // a file descriptor
		}
		_ = unix.Close(process)
		if ended != 1 {
			t.Fatalf("%s (process %d) still runs: %v", Program(pid), pid, err)
		}
	}
}
