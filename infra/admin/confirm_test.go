package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/ids"
)

// Only a whole name confirms, in any spelling, or 8 characters of the id or more. A damaged row
// has no name, and an empty line does not confirm it. An interruption ends the wait.
// testdata/confirm.txt tries each command that asks.
func TestOnlyANameConfirms(t *testing.T) {
	t.Parallel()
	confirm := func(ctx context.Context, stdin io.Reader) error {
		s := &session{app: &app{interactive: true, stdin: stdin, stderr: io.Discard}}
		return confirmation{}.confirm(ctx, s, "removes it", "a name", "5ad6c81e-id")
	}
	for typed, confirms := range map[string]bool{
		"a name\n": true, "5ad6c81e-id\n": true, "5AD6C81E\n": true, "5ad6c81\n": false, "\uff15\uff41\uff44\n": false, "5ad6c81e-if\n": false, "a name": false, "": false, "\n": false, "y\n": false, "yes\n": false,
		"A  NAME\n": true, "\uff41\u00a0name\n": true, "a name0\n": false, "\na name\n": false,
	} {
		err := confirm(t.Context(), strings.NewReader(typed))
		if confirmed := err == nil; confirmed != confirms || !confirmed && acts.Code(err, false) != acts.Refused {
			t.Errorf("typed %q: %v, want confirmed: %t", typed, err, confirms)
		}
	}
	ctx, interrupt := context.WithCancel(t.Context())
	silent := reader(func([]byte) (int, error) {
		interrupt()
		select {} // nothing is typed
	})
	if err := confirm(ctx, silent); acts.Code(err, false) != acts.Refused {
		t.Error(err)
	}
}

type reader func([]byte) (int, error)

func (r reader) Read(into []byte) (int, error) { return r(into) }

// after returns an input that calls happens before its first byte.
func after(happens func(), input string) io.Reader {
	return io.MultiReader(reader(func([]byte) (int, error) {
		happens()
		return 0, io.EOF
	}), strings.NewReader(input))
}

// If the default workspace changes between the question and the answer, the file of the
// workspace in the question is deleted.
func TestAFileIsDeletedInTheConfirmedWorkspace(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	second := d.must("workspace", "create", "second")
	d.feed("content", "file", "upload", "-", "--id", "file_a")
	d.change = func(a *app) {
		a.interactive, a.terminal = true, true
		a.stdin = after(func() {
			d.change = nil
			d.must("workspace", "default", second)
		}, "file_a\n")
	}
	if got := d.do("file", "delete", "file_a"); got.code != acts.Done || d.left(d.workspace) != 0 {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
}

// If the response to a deletion is lost, the repeated call finds nothing, but the audit line says
// that it may have been done. A service may also have applied a write that it answers oddly.
func TestAChangeMayBeUncertain(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	credential := string(d.seal(d.workspace, "n"))
	wantUncertain := func(code int, fault faults.Rule, args ...string) {
		t.Helper()
		d.broken().Inject(fault)
		if audits := d.want(code, args...).audits(); len(audits) != 1 || audits[0]["outcome"] != "uncertain" {
			t.Errorf("%v: %v", args, audits)
		}
	}
	wantUncertain(acts.Uncertain, faults.Rule{Operation: "UpdateItem", Fault: faults.Otherwise(http.StatusFound, `{"__type":"SomeException"}`)}, "key", "disable", d.key("k", ""))
	wantUncertain(acts.NotFound, faults.Rule{Operation: "DeleteItem", Attempt: 1, Fault: faults.LoseAnswer()}, "credential", "delete", credential, "--workspace", string(d.workspace), "--yes")
}

// atOnce lets a process end at once. Under the race detector each would wait for a second first.
const atOnce = "GORACE=atexit_sleep_ms=0"

// process returns the command as a process. It runs this binary: see TestMain.
func (d *fixture) process(args ...string) *exec.Cmd {
	command := exec.Command("admin", append([]string{"--local", d.dir}, args...)...) //nolint:gosec // the command under test
	command.Env = append(os.Environ(), atOnce)
	return command
}

// A signal ends a waiting command, and every change has its audit line.
func TestASignalEndsACommand(t *testing.T) {
	t.Parallel()
	d := newOnEngines(t)
	deleted := d.must("workspace", "create", "deleted")
	d.seal(ids.Workspace(deleted), "n")
	d.must("workspace", "delete", deleted, "--yes")
	command := d.process("workspace", "purge", deleted, "--yes")
	stderr, err := command.StderrPipe()
	kit.Must(t, err)
	kit.Must(t, command.Start())
	var got answer
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		got.stderr += lines.Text() + "\n"
		if strings.HasPrefix(lines.Text(), "Swept once") {
			kit.Must(t, command.Process.Signal(syscall.SIGHUP))
		}
	}
	_ = command.Wait()
	audits := got.audits()
	if command.ProcessState.ExitCode() != acts.Uncertain || len(audits) == 0 || audits[len(audits)-1]["outcome"] != "uncertain" {
		t.Errorf("%s: %s", command.ProcessState, got.stderr)
	}
}

// unread executes a command line whose standard output has lost its reader.
func (d *fixture) unread(args ...string) answer {
	d.Helper()
	reader, writer, err := os.Pipe()
	kit.Must(d, err)
	kit.Must(d, reader.Close())
	command, stderr := d.process(args...), new(bytes.Buffer)
	command.Stdout, command.Stderr = writer, stderr
	_ = command.Run()
	return answer{code: command.ProcessState.ExitCode(), stderr: stderr.String()}
}

// If a key cannot be shown, nobody can use it. A closed or discarded standard output accepts
// every byte.
func TestNoKeyIsMadeForNobody(t *testing.T) {
	t.Parallel()
	d := newOnEngines(t)
	if got := d.unread("key", "create", "unseen"); got.code != acts.Uncertain || !strings.Contains(got.stderr, "deleted again") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	for _, to := range []string{">&-", ">/dev/null"} {
		command := d.process("key", "create", "unseen")
		shell := exec.Command("sh", append([]string{"-c", `exec "$0" "$@" ` + to, command.Path}, command.Args[1:]...)...) //nolint:gosec // the command under test
		shell.Env = command.Env
		if shown, err := shell.CombinedOutput(); shell.ProcessState.ExitCode() != acts.Usage || !strings.Contains(string(shown), "no key was made") {
			t.Errorf("%s: %v: %s", to, err, shown)
		}
	}
	if listed := d.must("key", "list"); strings.Contains(listed, "unseen") {
		t.Errorf("listed\n%s", listed)
	}
}

// If a reader such as head stops reading, that is not reported as an error.
func TestALostReaderIsNotReported(t *testing.T) {
	t.Parallel()
	d := newOnEngines(t)
	for _, args := range [][]string{{"workspace", "list"}, {"key", "create", "--help"}} {
		if got := d.unread(args...); got.code != acts.Failed || got.stderr != "" {
			t.Errorf("%v: exit code %d: %s", args, got.code, got.stderr)
		}
	}
}

// A prefix that two keys or two credentials have names neither.
func TestAPrefixOfTwo(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	key, credential := d.key("one", ""), string(d.seal(d.workspace, "one"))
	for table, names := range map[string][2]string{
		d.engines.Tables.Access: {key, key[:60] + "0000"}, d.engines.Tables.Credentials: {credential, credential[:24] + "000000000000"},
	} {
		rows := d.table(table)
		for _, row := range rows.All(t) {
			pk, sk, id := kit.TextOf(row, "pk"), kit.TextOf(row, "sk"), kit.TextOf(row, "id")
			if strings.Contains(pk+sk, names[0]) {
				row["pk"], row["sk"] = kit.Text(strings.ReplaceAll(pk, names[0], names[1])), kit.Text(strings.ReplaceAll(sk, names[0], names[1]))
				if id != "" {
					row["id"] = kit.Text(names[1])
				}
				rows.Put(t, row)
			}
		}
	}
	for _, in := range []string{"", " --account " + string(d.account)} {
		d.want(acts.Usage, strings.Fields("key disable "+key[:8]+in)...)
		d.want(acts.Usage, strings.Fields("credential disable "+credential[:8]+in)...)
		d.must(strings.Fields("key disable " + key + in)...)
	}
}
