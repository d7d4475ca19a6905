package main

import (
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/testkit"
)

// The command detects whether somebody can answer on a terminal.
func TestARealTerminalIsAsked(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	terminal, far := newTerminal(t)
	second := d.must("workspace", "create", "second")
	_, err := far.WriteString("second\n")
	testkit.Must(t, err)
	for _, c := range []struct {
		stdin io.Reader
		code  int
	}{{nil, exit.Usage}, {terminal, exit.Done}} {
		command := d.process("workspace", "delete", second)
		command.Stdin, command.Stderr = c.stdin, terminal
		_ = command.Run()
		if got := command.ProcessState.ExitCode(); got != c.code {
			t.Errorf("exit code %d, want %d", got, c.code)
		}
	}
}

// newTerminal returns a terminal and the file through which a test types on it.
func newTerminal(t *testing.T) (terminal, far *os.File) {
	t.Helper()
	far, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = far.Close() })
	fd := int(far.Fd())
	testkit.Must(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	testkit.Must(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = terminal.Close() })
	return terminal, far
}
