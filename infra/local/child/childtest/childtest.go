// Package childtest lets tests see the children of a process. It reads Linux's
// /proc; only tests import it.
package childtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Of are the children of a process.
func Of(t testing.TB, pid int) []int {
	t.Helper()
	// Each thread lists the children that it started.
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(lists) == 0 {
		t.Fatalf("process %d cannot be looked at: %v", pid, err)
	}
	var children []int
	for _, list := range lists {
		// A thread may have ended meanwhile, and with it its list.
		text, _ := os.ReadFile(list) //nolint:gosec // of /proc
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			children = append(children, child)
		}
	}
	return children
}

// Program is the path of the program that a process runs.
func Program(pid int) string {
	program, _, _ := strings.Cut(read(pid, "cmdline"), "\x00")
	return program
}

// Gone reports whether a process has ended. One that nobody has waited for yet
// has.
func Gone(pid int) bool {
	_, state, found := strings.Cut(read(pid, "stat"), ") ")
	return !found || strings.HasPrefix(state, "Z")
}

func read(pid int, name string) string {
	// An error means that the process is not there.
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	return string(text)
}
