package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	local "signalbox.dev/infra/local"
	"signalbox.dev/infra/local/child/childtest"
)

// asCommand makes the test binary the command that it tests.
const asCommand = "SIGNALBOX_TEST_LOCAL"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		local.Main()
		return
	}
	m.Run()
}

// command is the command with these arguments.
func command(t *testing.T, state string, arguments ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{ //nolint:gosec // the test binary itself
		"-root", "../..", "-state", state, "-functions", os.Getenv("SIGNALBOX_FUNCTIONS"), "-port", "0",
	}, arguments...)...)
	cmd.Env = append(os.Environ(), asCommand+"=yes")
	return cmd
}

// started runs the command until its banner is complete, and returns that.
func started(t *testing.T, state string) (*exec.Cmd, string) {
	t.Helper()
	cmd := command(t, state)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var banner strings.Builder
	for lines := bufio.NewScanner(output); lines.Scan(); {
		banner.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "Stop:") {
			return cmd, banner.String()
		}
	}
	t.Fatalf("it did not start: %s", complaints.String())
	return nil, ""
}

// ended waits until the processes are gone.
func ended(t *testing.T, pids []int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for _, pid := range pids {
		for !childtest.Gone(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("%s (process %d) is still there", childtest.Program(pid), pid)
			}
		}
	}
}

// The printed lines are what a newcomer pastes.
func TestBanner(t *testing.T) {
	state := t.TempDir()
	cmd, banner := started(t, state)
	var curls []string
	for line := range strings.Lines(banner) {
		if strings.HasPrefix(line, "  curl ") {
			curls = append(curls, strings.TrimSpace(line))
		}
	}
	if len(curls) != 3 {
		t.Fatalf("%d lines to paste in\n%s", len(curls), banner)
	}
	for i, want := range []string{"HTTP/1.1 200 OK", "HTTP/1.1 201 Created", "HTTP/1.1 200 OK"} {
		got, err := exec.Command("sh", "-c", curls[i]).Output() //nolint:gosec // the command's own line
		if err != nil || !strings.HasPrefix(string(got), want) {
			t.Errorf("%s\n%s %v, want %s", curls[i], got, err, want)
		}
	}
	children := childtest.Of(t, cmd.Process.Pid)
	if len(children) < 5 {
		t.Errorf("%d children, want two engines and three functions", len(children))
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	ended(t, children)
}

// Killed in the middle of a stream of deletions, the edition leaves no process
// behind; what it had answered holds after the next start.
func TestKilled(t *testing.T) {
	state := t.TempDir()
	cmd, _ := started(t, state)
	facts := readFacts(t, state)
	var deleted []string
	for i, file := range facts.Files[facts.Workspace] {
		if i == 10 {
			break
		}
		if got := remove(t, facts, file); got == http.StatusOK {
			deleted = append(deleted, file)
		}
	}
	children := childtest.Of(t, cmd.Process.Pid)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	ended(t, children)

	begin := time.Now()
	started(t, state)
	t.Logf("back after %v", time.Since(begin))
	again := readFacts(t, state)
	if again.Key != facts.Key || len(deleted) != 10 {
		t.Errorf("%d deletions before the kill; same key afterwards: %v", len(deleted), again.Key == facts.Key)
	}
	for _, file := range deleted {
		if got := remove(t, again, file); got != http.StatusNotFound {
			t.Errorf("%s: %d after the restart", file, got)
		}
	}
}

type facts struct {
	BaseURL   string              `json:"base_url"`
	Key       string              `json:"api_key"`
	Workspace string              `json:"workspace_id"`
	Files     map[string][]string `json:"files"`
}

func readFacts(t *testing.T, state string) facts {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(state, "demo.json")) //nolint:gosec // a file of the state folder
	if err != nil {
		t.Fatal(err)
	}
	var f facts
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func remove(t *testing.T, f facts, file string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, f.BaseURL+"/files/"+file, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+f.Key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode
}

func TestReset(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	cmd, _ := started(t, state)
	if out, err := command(t, state, "-reset").CombinedOutput(); err == nil || !strings.Contains(string(out), "another edition uses") {
		t.Errorf("while it runs: %v %s", err, out)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	for range 2 {
		if out, err := command(t, state, "-reset").CombinedOutput(); err != nil {
			t.Errorf("reset: %v %s", err, out)
		}
	}
	if _, err := os.Stat(state); !os.IsNotExist(err) {
		t.Errorf("the state is still there: %v", err)
	}
}

func TestComplaints(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"-param", "DeleteBurst"}, "want Name=Value"},
		{[]string{"-param", "Nope=1"}, "local: the template has no parameter Nope\n"},
		{[]string{"-param", "DeleteBurst=0"}, "local: parameter DeleteBurst: 0 is less than 1\n"},
		{[]string{"-functions", "nowhere"}, "/nowhere/GetSyncJobFunction/bootstrap, "},
		{[]string{"-port", ""}, "want a number: make run PORT=3000\n"},
		{[]string{"-port", "65536"}, "local: there is no port 65536: choose one up to 65535: make run PORT=3000\n"},
		{[]string{"stray"}, `local: what is "stray"?`},
	} {
		out, err := command(t, t.TempDir(), c.arguments...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%v: %v %s", c.arguments, err, out)
		}
	}
}
