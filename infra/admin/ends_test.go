package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/ids"
)

// process returns the command as a process. It is this binary, see TestMain.
func (d *fixture) process(args ...string) *exec.Cmd {
	return exec.Command("admin", append([]string{"--local", d.dir}, args...)...) //nolint:gosec // the command under test
}

// A signal ends a command wherever it waits, and every change has its audit line.
func TestASignalEndsACommand(t *testing.T) {
	d := newFixture(t)
	deleted := d.must("workspace", "create", "deleted")
	d.seal(ids.Workspace(deleted), "n")
	d.must("workspace", "delete", deleted, "--yes")
	for _, c := range []struct {
		args    []string
		await   string
		signal  os.Signal
		code    int
		outcome string
	}{
		{[]string{"workspace", "purge", deleted, "--yes"}, "Swept once", syscall.SIGHUP, exit.Uncertain, "uncertain"},
		{[]string{"file", "upload", "-"}, "target:", syscall.SIGTERM, exit.Failed, "refused"},
	} {
		command := d.process(c.args...)
		_, err := command.StdinPipe()
		testkit.Must(t, err)
		stderr, err := command.StderrPipe()
		testkit.Must(t, err)
		testkit.Must(t, command.Start())
		var got answer
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			got.stderr += lines.Text() + "\n"
			if strings.HasPrefix(lines.Text(), c.await) {
				testkit.Must(t, command.Process.Signal(c.signal))
			}
		}
		_ = command.Wait()
		audits := got.audits()
		if command.ProcessState.ExitCode() != c.code || len(audits) == 0 || audits[len(audits)-1]["outcome"] != c.outcome {
			t.Errorf("%v: %s: %s", c.args, command.ProcessState, got.stderr)
		}
	}
}

// A key that nobody saw lets nobody in. The reader of standard output may have gone.
func TestAKeyThatCannotBeShownIsDeleted(t *testing.T) {
	d := newFixture(t)
	reader, writer, err := os.Pipe()
	testkit.Must(t, err)
	testkit.Must(t, reader.Close())
	command, stderr := d.process("key", "create", "unseen"), new(bytes.Buffer)
	command.Stdout, command.Stderr = writer, stderr
	err = command.Run()
	if exited, ok := errors.AsType[*exec.ExitError](err); !ok || exited.ExitCode() != exit.Uncertain || !strings.Contains(stderr.String(), "deleted again") {
		t.Errorf("%v: %s", err, stderr)
	}
	if listed := d.must("key", "list"); strings.Contains(listed, "unseen") {
		t.Errorf("listed\n%s", listed)
	}
}

// A deletion means the confirmed workspace, also if the default changes before it.
func TestADeletionMeansWhatWasConfirmed(t *testing.T) {
	d := newFixture(t)
	second, credential := d.must("workspace", "create", "second"), string(d.seal(d.workspace, "n"))
	d.change = func(a *app) {
		a.interactive, a.terminal = true, true
		a.stdin = io.MultiReader(reader(func([]byte) (int, error) {
			d.change = nil
			d.must("workspace", "default", second)
			return 0, io.EOF
		}), strings.NewReader("n\n"))
	}
	if got := d.do("credential", "delete", credential); got.code != exit.Done || d.left(d.workspace) != 0 {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
}
