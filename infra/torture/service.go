// Package torture kills processes of the single-machine edition, and sends it more
// requests than it can serve. Then it compares all responses with the storage: each
// acknowledged write is there, no refused one is, and one without a response is there
// whole or not at all.
//
// The workers share no objects: infra/sim plays all orders of requests that do.
package torture

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"signalbox.dev/infra/local/child"
	"signalbox.dev/infra/local/port"
	"signalbox.dev/infra/testkit"
)

const (
	// startTimeout bounds a start, the first one in an empty folder included.
	startTimeout = 3 * time.Minute
	stopTimeout  = time.Minute
)

// Config configures a service.
type Config struct {
	// Root is the repository's folder, with everything built in .build.
	Root string
	// State is the folder of the edition's state.
	State string
	// Parameters overrides the template's parameters.
	Parameters map[string]string
}

// Unthrottled is a rate that no machine reaches.
const Unthrottled = 100000

// Throttled adds to the parameters a gateway throttle of rate requests a second
// for each operation.
func Throttled(rate int, parameters map[string]string) map[string]string {
	parameters["ReadsPerSecond"], parameters["WritesPerSecond"] = strconv.Itoa(rate), strconv.Itoa(rate)
	return parameters
}

// Service is a running edition.
type Service struct {
	config Config
	port   string

	mu      sync.Mutex // held while it restarts
	running *running
	stack   *testkit.Stack
}

// running is one process of the edition.
type running struct {
	cmd      *exec.Cmd
	lifetime context.Context // ended by kill
	kill     context.CancelFunc
	ended    chan struct{}
	stderr   bytes.Buffer // may be read once ended is closed
}

// Start starts the edition and returns when it serves requests.
func Start(ctx context.Context, c Config) (*Service, error) {
	free, err := port.Free("127.0.0.1", 1)
	if err != nil {
		return nil, err
	}
	s := &Service{config: c, port: free[0]}
	return s, s.start(ctx)
}

// BaseURL is the base of the contract's paths.
func (s *Service) BaseURL() string { return "http://127.0.0.1:" + s.port + "/api/v1" }

// Stack is the stack behind the service, and a context that ends with it: a
// restart makes another, and Stack waits for it.
func (s *Service) Stack() (*testkit.Stack, context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stack, s.running.lifetime
}

// Restart kills the whole edition and starts it again.
func (s *Service) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running.kill()
	<-s.running.ended
	return s.start(ctx)
}

// Close ends the edition with SIGTERM.
func (s *Service) Close() error {
	r := s.running
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-r.ended:
		return nil
	case <-time.After(stopTimeout):
		r.kill()
		<-r.ended
		return errors.New("the edition did not end on SIGTERM")
	}
}

func (s *Service) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	arguments := []string{"-quiet", "-root", s.config.Root, "-state", s.config.State, "-port", s.port}
	for name, value := range s.config.Parameters {
		arguments = append(arguments, "-param", name+"="+value)
	}
	lifetime, kill := context.WithCancel(context.Background())
	r := &running{lifetime: lifetime, kill: kill, ended: make(chan struct{})}
	r.cmd = exec.CommandContext(lifetime, filepath.Join(s.config.Root, ".build", "local"), arguments...) //nolint:gosec // the repository's own
	r.cmd.Stderr = &r.stderr
	stdout, written, err := os.Pipe()
	if err != nil {
		kill()
		return err
	}
	r.cmd.Stdout = written
	begun := make(chan struct{}) // closed once r.cmd has its process
	go func() {
		defer close(r.ended)
		_ = child.Run(r.cmd, func() { close(begun) }) // only its end matters
		_ = written.Close()
	}()
	serving := make(chan bool, 1)
	go func() { serving <- await(stdout) }()
	select {
	case ok := <-serving:
		if !ok {
			<-r.ended
			return fmt.Errorf("the edition did not start: %s", r.stderr.String())
		}
		<-begun
	case <-ctx.Done():
		kill()
		return fmt.Errorf("the edition did not start: %w", ctx.Err())
	}
	stack, err := testkit.OpenStack(ctx, filepath.Join(s.config.State, "stack.json"))
	if err != nil {
		return err
	}
	s.running, s.stack = r, stack
	return nil
}

// await returns true when the edition prints its address, and false when it ends
// before. What is printed afterwards is discarded.
func await(stdout *os.File) bool {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "Signalbox is at ") {
			go func() {
				_, _ = io.Copy(io.Discard, stdout)
				_ = stdout.Close()
			}()
			return true
		}
	}
	_ = stdout.Close()
	return false
}
