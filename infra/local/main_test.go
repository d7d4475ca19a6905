package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/local/child/childtest"
	"signalbox.dev/infra/test/kit"
)

// asCommand makes the test binary run as the command.
const asCommand = "SIGNALBOX_TEST_LOCAL"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	m.Run()
}

// flags are the flags of a run on a free port, and further arguments.
func flags(state string, more ...string) []string {
	return append([]string{"-root", "../..", "-state", state, "-port", "0"}, more...)
}

// command returns the command with these arguments.
func command(t *testing.T, state string, arguments ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], flags(state, arguments...)...) //nolint:gosec // the test binary itself
	// Under the race detector every process would sleep for a second as it ends.
	cmd.Env = append(append(os.Environ(), asCommand+"=yes", "GORACE=atexit_sleep_ms=0"), kit.Hostile(t)...)
	return cmd
}

// start runs the command until its banner is complete, and returns the banner. Nobody reads
// what it writes later, as in `make run | head`.
func start(t *testing.T, state string, arguments ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := command(t, state, arguments...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.StdoutPipe()
	kit.Must(t, err)
	kit.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var banner strings.Builder
	for lines := bufio.NewScanner(output); lines.Scan(); {
		banner.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "Stop:") {
			kit.Must(t, output.Close())
			return cmd, banner.String()
		}
	}
	t.Fatalf("it did not start: %s", stderr.String())
	return nil, ""
}

// After a SIGKILL no process of the local server is left, and its demo account survives.
// The banner's command lines work when pasted. Ctrl-C ends every process. A reset
// removes the state, but refuses if the local server is running.
func TestRunAndReset(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "a state")
	killed, before := start(t, state)
	children := childtest.Of(t, killed.Process.Pid)
	kit.Must(t, killed.Process.Kill())
	_ = killed.Wait()
	childtest.AwaitEnd(t, children)

	cmd, after := start(t, state)
	varies := regexp.MustCompile(`127\.0\.0\.1:\d+|file_\w+`)
	if diff := cmp.Diff(varies.ReplaceAllString(before, ""), varies.ReplaceAllString(after, "")); diff != "" {
		t.Errorf("the banner after a kill differs:\n%s", diff)
	}
	variables := regexp.MustCompile(`(?m)^  \. .*$`).FindString(after)
	curls := regexp.MustCompile(`(?m)^  curl .*$`).FindAllString(after, -1)
	functions, err := filepath.Glob("../../functions/*/main.go")
	kit.Must(t, err)
	if len(curls) != len(functions) {
		t.Fatalf("%d command lines for %d functions in\n%s", len(curls), len(functions), after)
	}
	for _, curl := range curls {
		got, err := exec.Command("sh", "-c", variables+"\n"+curl).Output() //nolint:gosec // the command's own line
		if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 20") {
			t.Errorf("%s\n%s %v, want success", curl, got, err)
		}
	}
	if children = childtest.Of(t, cmd.Process.Pid); len(children) < 2+len(functions) {
		t.Errorf("%d children, want two engines and %d functions", len(children), len(functions))
	}
	if out, err := command(t, state, "-reset").CombinedOutput(); err == nil || !strings.Contains(string(out), "another local server uses") {
		t.Errorf("reset while it runs: %v %s", err, out)
	}
	kit.Must(t, cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	childtest.AwaitEnd(t, children)
	for range 2 {
		if out, err := command(t, state, "-reset").CombinedOutput(); err != nil {
			t.Errorf("reset: %v %s", err, out)
		}
	}
	if _, err := os.Stat(state); !os.IsNotExist(err) {
		t.Errorf("the state is still there: %v", err)
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"-param", "DeleteBurst"}, "want Name=Value"},
		{[]string{"-param", "Nope=1"}, "the template has no parameter Nope"},
		{[]string{"-port", ""}, "want a number: make run PORT=3000"},
		{[]string{"-port", "65536"}, "port 65536 is out of range: choose one up to 65535: make run PORT=3000"},
		{[]string{"stray"}, `unknown argument "stray"`},
	} {
		t.Run(strings.Join(c.arguments, " "), func(t *testing.T) {
			t.Parallel()
			if err := run(t.Context(), flags(t.TempDir(), c.arguments...), io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
}
