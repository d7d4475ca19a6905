package engines_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"signalbox.dev/infra/local/engines"
	"signalbox.dev/infra/testkit"
)

// objects returns the command of an engine that answers on the port.
func objects(dir, port string) *exec.Cmd {
	return exec.Command("../../../.build/objects", "-addr", net.JoinHostPort("127.0.0.1", port), "-dir", dir, "-access-key", "id", "-secret-key", "secret") //nolint:gosec // a binary of ours
}

// An engine that ends at once, perhaps before its start was noticed, is started
// twice more, on other ports; the output of each start is kept.
func TestAnEngineThatEndsAtOnceGetsOtherPorts(t *testing.T) {
	for range 50 {
		dir := t.TempDir()
		var ports []string
		err := engines.Launch(t.Context(), dir, func(port string) *exec.Cmd {
			ports = append(ports, port)
			return exec.Command("echo", port) //nolint:gosec // a port of ours
		})
		log := filepath.Join(dir, "made-up.log")
		if err == nil || !strings.Contains(err.Error(), log) || !strings.HasSuffix(err.Error(), ": it ended") {
			t.Fatalf("%v, want that it ended and %s", err, log)
		}
		if output, err := os.ReadFile(log); err != nil || !slices.Equal(strings.Fields(string(output)), ports) { //nolint:gosec // a folder of the test
			t.Fatalf("the log contains %q, %v; want %q", output, err, ports)
		}
		slices.Sort(ports)
		if len(slices.Compact(ports)) != 3 {
			t.Fatalf("started on the ports %q", ports)
		}
	}
}

func TestAnEngineThatNeverAnswersIsEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready := filepath.Join(t.TempDir(), "ready")
	testkit.Must(t, syscall.Mkfifo(ready, 0o600))
	go func() {
		_, _ = os.ReadFile(ready) //nolint:gosec // returns once the engine ignores SIGTERM
		cancel()
	}()
	var command *exec.Cmd
	err := engines.Launch(ctx, t.TempDir(), func(string) *exec.Cmd {
		command = exec.Command("sh", "-c", "trap '' TERM; echo >"+ready+"; while :; do sleep 1000; done") //nolint:gosec // a path of ours
		return command
	})
	if err == nil || command.ProcessState == nil {
		t.Errorf("%v, and it ended: %v", err, command.ProcessState)
	}
}

// An engine may be killed again while it is restarted; after three failed restarts
// Done returns an error.
func TestRestarts(t *testing.T) {
	for _, failing := range []int{2, 3} {
		t.Run(fmt.Sprint(failing), func(t *testing.T) {
			dir, starts := t.TempDir(), make(chan int, 10)
			started := 0
			e, err := engines.Keep(t.Context(), dir, func(port string) *exec.Cmd {
				started++
				starts <- started
				if started > 1 && started <= 1+failing {
					return exec.Command("false")
				}
				return objects(dir, port)
			})
			testkit.Must(t, err)
			t.Cleanup(func() { stop(t, e) })
			testkit.Must(t, e.Kill())
			late := time.After(patience)
			for n := 0; n < 4; {
				select {
				case n = <-starts:
				case <-late:
					t.Fatal("it is not started again")
				}
			}
			if failing == 3 {
				select {
				case err := <-e.Done():
					if !strings.Contains(err.Error(), "starting made-up again") || len(starts) != 0 {
						t.Errorf("%v, %d more starts", err, len(starts))
					}
				case <-late:
					t.Fatal("Done returns nothing")
				}
				return
			}
			for {
				connection, err := net.Dial("tcp", strings.TrimPrefix(e.S3, "http://"))
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
		})
	}
}

// The engine gets a whole request, and finishes it, when the caller is gone:
// ExtendDB would keep its database locked.
func TestTheEngineFinishesARequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cancel()
		_, _ = io.Copy(w, r.Body)
	}))
	defer engine.Close()
	answer := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader("a whole request"))
	engines.Front(t, engine.URL).ServeHTTP(answer, request)
	if got := answer.Body.String(); got != "a whole request" {
		t.Errorf("the engine answered %q", got)
	}
}
