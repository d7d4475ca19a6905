// Package childtest reports the children of a process, from Linux's /proc. Only
// tests import it.
package childtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

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
		// A thread may have ended; its list is then gone too.
		text, _ := os.ReadFile(list) //nolint:gosec // a file of /proc
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

// Program returns the path of the program that a process runs. It is empty if the process
// has ended, waited for or not.
func Program(pid int) string {
	program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return program
}

// AwaitEnd waits until the processes have ended, for at most a minute.
func AwaitEnd(t testing.TB, pids []int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for _, pid := range pids {
		for Program(pid) != "" {
			if time.Now().After(deadline) {
				t.Fatalf("%s (process %d) still runs", Program(pid), pid)
			}
			time.Sleep(time.Millisecond)
		}
	}
}
