// Package service runs the single-machine edition as a process of its own, which
// can be killed, whole or in part, and is then started again on the same port
// with the same state.
package service

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	// startTime bounds a start, the first one in an empty folder included.
	startTime = time.Minute
	stopTime  = 20 * time.Second
)

// Config says what to run.
type Config struct {
	// Root is the repository's folder, with everything built in .build.
	Root string
	// State is the folder of everything that is kept.
	State string
	// Parameters overrides the template's parameters.
	Parameters map[string]string
}

// Unthrottled is far above what a machine can send.
const Unthrottled = 100000

// Throttled adds to the parameters that the gateway passes so many requests of
// each operation a second.
func Throttled(rate int, parameters map[string]string) map[string]string {
	for _, function := range []string{"Default", "GetSyncJob", "CreateByokKey", "DeleteFile"} {
		parameters[function+"ThrottleRate"] = strconv.Itoa(rate)
		parameters[function+"ThrottleBurst"] = strconv.Itoa(rate)
	}
	return parameters
}

// Service is a running edition.
type Service struct {
	config Config

	mu      sync.Mutex
	running *running
	stack   *testkit.Stack
}

// running is one process of the edition.
type running struct {
	cmd    *exec.Cmd
	kill   context.CancelFunc
	base   string
	ended  chan struct{}
	stderr tail
}

// Start starts the edition and returns once it answers.
func Start(ctx context.Context, c Config) (*Service, error) {
	s := &Service{config: c}
	free, err := port.Free("127.0.0.1", 1)
	if err != nil {
		return nil, err
	}
	return s, s.start(ctx, free[0])
}

// BaseURL is what the paths of the contract are relative to. It stays the same
// over restarts.
func (s *Service) BaseURL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running.base
}

// Stack is what stands behind the service. It changes with each restart.
func (s *Service) Stack() *testkit.Stack {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stack
}

// SetParameters takes effect at the next restart.
func (s *Service) SetParameters(parameters map[string]string) {
	s.config.Parameters = parameters
}

// Restart kills the whole edition, with everything that it runs, and starts it
// again.
func (s *Service) Restart(ctx context.Context) error {
	base := s.BaseURL()
	s.kill()
	_, address, _ := strings.Cut(base, "://")
	_, on, _ := strings.Cut(strings.TrimSuffix(address, "/api/v1"), ":")
	return s.start(ctx, on)
}

// Close stops the edition in order.
func (s *Service) Close() error {
	s.mu.Lock()
	r := s.running
	s.mu.Unlock()
	if r == nil {
		return nil
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-r.ended:
		return nil
	case <-time.After(stopTime):
		s.kill()
		return errors.New("the edition did not stop on SIGTERM")
	}
}

func (s *Service) kill() {
	s.mu.Lock()
	r := s.running
	s.mu.Unlock()
	r.kill()
	<-r.ended
}

func (s *Service) start(ctx context.Context, on string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	lifetime, kill := context.WithCancel(context.Background())
	r := &running{kill: kill, ended: make(chan struct{})}
	r.cmd = exec.CommandContext(lifetime, filepath.Join(s.config.Root, ".build", "local"), s.arguments(on)...) //nolint:gosec // the repository's own
	r.cmd.Stderr = &r.stderr
	stdout, written, err := os.Pipe()
	if err != nil {
		kill()
		return err
	}
	r.cmd.Stdout = written
	begun := make(chan struct{}) // r.cmd has its process
	go func() {
		defer close(r.ended)
		_ = child.Run(r.cmd, func() { close(begun) }) // that it ended is all that counts
		_ = written.Close()
	}()
	address := make(chan string, 1)
	go r.listen(stdout, address)
	select {
	case base, ok := <-address:
		if !ok {
			<-r.ended
			return fmt.Errorf("the edition did not start: %s", r.stderr.String())
		}
		<-begun
		r.base = base
	case <-ctx.Done():
		kill()
		return fmt.Errorf("the edition does not answer: %w", ctx.Err())
	}
	stack, err := testkit.OpenStack(ctx, filepath.Join(s.config.State, "stack.json"))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.stack = r, stack
	return nil
}

func (s *Service) arguments(on string) []string {
	all := []string{"-root", s.config.Root, "-state", s.config.State, "-port", on}
	for name, value := range s.config.Parameters {
		all = append(all, "-param", name+"="+value)
	}
	return all
}

// listen reads the address that the edition prints, or closes the channel where it ends
// before.
func (r *running) listen(stdout *os.File, address chan<- string) {
	defer func() { _ = stdout.Close() }()
	defer close(address)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if base, found := strings.CutPrefix(lines.Text(), "Signalbox is at "); found {
			address <- base
			_, _ = io.Copy(io.Discard, stdout)
			return
		}
	}
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = slices.Clone(t.text[max(0, len(t.text)-tailSize):])
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
