package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"signalbox.dev/infra/local/child/childtest"
	"signalbox.dev/infra/reach"
	"signalbox.dev/infra/testkit"
)

const patience = time.Minute

// TestMain makes the test binary the command that it tests.
func TestMain(m *testing.M) {
	if os.Getenv("SIGNALBOX_TEST_ENGINES") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// command is the command as a separate process.
type command struct {
	*exec.Cmd
	stdin    io.Closer
	temp     string // its folder for temporary files
	children []int
	ended    chan error
}

func start(t *testing.T) *command {
	t.Helper()
	c := &command{Cmd: exec.Command(os.Args[0]), temp: t.TempDir(), ended: make(chan error, 1)} //nolint:gosec // the test itself
	// Under the race detector every process would sleep for a second as it ends.
	c.Env = append(os.Environ(), "SIGNALBOX_TEST_ENGINES=1", "TMPDIR="+c.temp, "GORACE=atexit_sleep_ms=0")
	c.Stderr = t.Output()
	var err error
	c.stdin, err = c.StdinPipe()
	testkit.Must(t, err)
	stdout, err := c.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() }) // it may have ended already
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("no output: %v", err)
	}
	var a reach.Engines
	if err := json.Unmarshal(line, &a); err != nil || a.DynamoDB == "" || a.KMS == "" || a.S3 == "" {
		t.Fatalf("%s: %v", line, err)
	}
	if c.children = childtest.Of(t, c.Process.Pid); len(c.children) != 2 {
		t.Errorf("%d children", len(c.children))
	}
	go func() { c.ended <- c.Wait() }()
	return c
}

// However the command ends, its engines end with it.
func TestEngineProcessesEndWithTheCommand(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(*command) error
		want string // the command's error
		left int    // in its folder for temporary files
	}{
		"end of input": {end: func(c *command) error { return c.stdin.Close() }},
		"SIGTERM":      {end: func(c *command) error { return c.Process.Signal(syscall.SIGTERM) }},
		"SIGINT":       {end: func(c *command) error { return c.Process.Signal(os.Interrupt) }},
		"SIGKILL":      {end: func(c *command) error { return c.Process.Kill() }, want: "signal: killed", left: 1},
		"an engine that cannot be restarted": {end: func(c *command) error {
			folders, err := filepath.Glob(filepath.Join(c.temp, "*"))
			return errors.Join(err, os.RemoveAll(folders[0]), syscall.Kill(c.children[0], syscall.SIGKILL))
		}, want: "exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			testkit.Must(t, test.end(c))
			select {
			case err := <-c.ended:
				if err == nil && test.want != "" || err != nil && err.Error() != test.want {
					t.Errorf("it ended with %v, want %q", err, test.want)
				}
			case <-time.After(patience):
				t.Fatal("it does not end")
			}
			childtest.AwaitEnd(t, c.children)
			if left, err := os.ReadDir(c.temp); err != nil || len(left) != test.left {
				t.Errorf("it left %v, %v", left, err)
			}
		})
	}
}
