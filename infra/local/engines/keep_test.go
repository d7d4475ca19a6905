package engines_test

import (
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/local/engines"
)

// ending is an engine that answers, but ends at once at some of its starts.
func ending(dir string, starts chan<- int, bad ...bool) func(port string) *exec.Cmd {
	started := 0
	return func(port string) *exec.Cmd {
		started++
		starts <- started
		if started <= len(bad) && bad[started-1] {
			return exec.Command("false")
		}
		return exec.Command("../../../.build/objects", "-addr", net.JoinHostPort("127.0.0.1", port), "-dir", dir, "-access-key", "id", "-secret-key", "secret") //nolint:gosec // a binary of ours
	}
}

func keep(t *testing.T, starts chan<- int, bad ...bool) *engines.Engines {
	t.Helper()
	dir := t.TempDir()
	e, err := engines.Keep(t.Context(), dir, ending(dir, starts, bad...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, e) })
	return e
}

// An engine may be killed while it is being started again.
func TestAKilledRestartIsTriedAgain(t *testing.T) {
	starts := make(chan int, 10)
	e := keep(t, starts, false, true, true, false)
	if err := e.Kill(); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < 4; {
		select {
		case n = <-starts:
		case err := <-e.Done():
			t.Fatal(err)
		case <-time.After(patience):
			t.Fatal("it is not started again")
		}
	}
	awaitAnswer(t, e.S3)
}

func TestAnEngineThatEndsAtEveryRestartIsGivenUp(t *testing.T) {
	starts := make(chan int, 10)
	e := keep(t, starts, false, true, true, true, true)
	if err := e.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-e.Done():
		if !strings.Contains(err.Error(), "starting made-up again") {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("nobody was told")
	}
	if len(starts) != 4 {
		t.Errorf("%d starts", len(starts))
	}
}

func awaitAnswer(t *testing.T, url string) {
	t.Helper()
	late := time.After(patience)
	for {
		connection, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err == nil {
			_ = connection.Close()
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-late:
			t.Fatal(err)
		}
	}
}
