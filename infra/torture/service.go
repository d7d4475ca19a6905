// Package torture kills processes of the single-machine edition, and sends it more
// requests than it can serve. Then it compares all responses with the storage: every
// acknowledged write is stored, and no refused one is. A write without a response is
// stored completely or not at all.
//
// The workers share no objects: infra/sim plays requests that share objects, in all
// orders.
package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"signalbox.dev/infra/local/child"
	"signalbox.dev/infra/testkit"
)

const (
	root = "../.." // with everything built in .build

	// startTimeout bounds a start, including the first start in an empty folder.
	startTimeout = 3 * time.Minute
	stopTimeout  = time.Minute
)

// Service is a running edition.
type Service struct {
	state      string            // the folder of the edition's state
	parameters map[string]string // override the template's
	port       string

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

// Start starts an edition with these parameters, and its state in the folder. It returns
// when the edition serves requests.
func Start(ctx context.Context, state string, parameters map[string]string) (*Service, error) {
	free, err := child.FreePort()
	if err != nil {
		return nil, err
	}
	s := &Service{state: state, parameters: parameters, port: free}
	return s, s.start(ctx)
}

// BaseURL is the base of the contract's paths.
func (s *Service) BaseURL() string { return "http://127.0.0.1:" + s.port + "/api/v1" }

// Stack returns the stack behind the service, and a context that ends with it. During a
// restart, Stack waits for the new stack.
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

// serves reports whether the edition answers.
func (s *Service) serves(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.BaseURL(), nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	return err == nil && response.Body.Close() == nil
}

func (s *Service) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	arguments := []string{"-quiet", "-root", root, "-state", s.state, "-port", s.port}
	for name, value := range s.parameters {
		arguments = append(arguments, "-param", name+"="+value)
	}
	lifetime, kill := context.WithCancel(context.Background())
	r := &running{lifetime: lifetime, kill: kill, ended: make(chan struct{})}
	r.cmd = exec.CommandContext(lifetime, filepath.Join(root, ".build", "local"), arguments...) //nolint:gosec // the repository's own
	r.cmd.Stderr = &r.stderr
	started := make(chan struct{})
	go func() {
		defer close(r.ended)
		_ = child.Run(r.cmd, func() { close(started) }) // its error does not matter
	}()
	select {
	case <-started:
	case <-r.ended:
	}
	for !s.serves(ctx) {
		select {
		case <-r.ended:
			return fmt.Errorf("the edition did not start: %s", r.stderr.String())
		case <-ctx.Done():
			kill()
			return fmt.Errorf("the edition did not start: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	stack, err := testkit.OpenStack(ctx, filepath.Join(s.state, "stack.json"))
	if err != nil {
		return err
	}
	s.running, s.stack = r, stack
	return nil
}
