package engines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"signalbox.dev/infra/local/child"
)

const (
	pollEvery = 5 * time.Millisecond
	// stopTime is short because versitygw waits for idle connections to be closed, and
	// because no engine loses data by a SIGKILL.
	stopTime = 300 * time.Millisecond
	// starts bounds the starts in a row of an engine that ends at once.
	starts = 3
	// answerTime bounds how long an engine may take to answer: a Python program on a
	// loaded machine. ExtendDB tries for ever to open a damaged database.
	answerTime = 2 * time.Minute
)

// errEnded means that an engine ended by itself.
var errEnded = errors.New("it ended")

// process is an engine that runs as a process.
type process struct {
	engine
	port string
	// ended gets the reason of its end, with errEnded.
	ended chan error
}

func (p engine) log() string { return filepath.Join(p.dir, p.name+".log") }

func (p process) url() string { return "http://" + net.JoinHostPort(host, p.port) }

// start starts an engine and returns its URL when it answers.
func (e *Engines) start(ctx context.Context, p engine) (string, error) {
	at, err := e.run(ctx, p)
	if err == nil && p.isExtendDB {
		at, err = e.serve("the proxy before DynamoDB", front(at))
	}
	return at, err
}

// run starts a process on a free port, and on another one if it ends before it answers:
// another program may have been faster.
func (e *Engines) run(ctx context.Context, p engine) (string, error) {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return "", fmt.Errorf("making the folder of %s: %w", p.name, err)
	}
	if err := os.WriteFile(p.log(), nil, 0o600); err != nil {
		return "", fmt.Errorf("emptying the log of %s: %w", p.name, err)
	}
	var failed error
	for range starts {
		port, err := freePort()
		if err != nil {
			return "", err
		}
		running := process{p, port, make(chan error, 1)}
		failed = e.launch(ctx, running)
		if failed == nil {
			e.running.Go(func() {
				if err := <-running.ended; e.life.Err() == nil { // Close did not end it
					e.done <- fmt.Errorf("%s, whose log is %s: %w", p.name, p.log(), err)
				}
			})
			return running.url(), nil
		}
		if !errors.Is(failed, errEnded) {
			break
		}
	}
	return "", failed
}

// freePort finds a port on which no program listens, for a server that cannot be given a
// socket. The port lies below those that systems choose by themselves (from 32768 on Linux,
// from 49152 elsewhere), so no connection takes it before the server listens.
// Another process may find the same port at the same time, which is unlikely.
func freePort() (string, error) {
	var failed error
	for range 100 {
		port := strconv.Itoa(20000 + rand.IntN(12768)) //nolint:gosec // no secret
		listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
		if err == nil {
			return port, listener.Close()
		}
		failed = err
	}
	return "", fmt.Errorf("looking for a free port: %w", failed)
}

// launch runs the process, and returns when it answers. Its output is appended to its log:
// the attempt before may have written there why it ended.
func (e *Engines) launch(ctx context.Context, p process) error {
	log, err := os.OpenFile(p.log(), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.name, err)
	}
	life, stop := context.WithCancel(e.life)
	arguments := slices.Clone(p.arguments)
	arguments[len(arguments)-1] += p.port
	cmd := exec.CommandContext(life, p.program, arguments...) //nolint:gosec // see programs.go
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	cmd.Env = append([]string{}, p.environment...) // empty, not nil: nil would be this process's
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTime
	e.running.Go(func() {
		p.ended <- fmt.Errorf("%w: %w", errEnded, cmp.Or(child.Run(cmd), errors.New("exit status 0")))
		stop()
		_ = log.Close()
	})
	if err := p.answers(ctx); err != nil {
		stop()
		return fmt.Errorf("%s does not answer (see %s): %w", p.name, log.Name(), err)
	}
	return nil
}

// answers waits until the process answers or ends, or until ctx ends. If another program
// took the port first, the process cannot listen, and ends.
func (p process) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	direct := &http.Transport{} // it uses no proxy, even if the environment names one
	defer direct.CloseIdleConnections()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url()+p.health, nil)
		if err != nil {
			return err
		}
		answer, err := direct.RoundTrip(request)
		if err == nil {
			return answer.Body.Close()
		}
		select {
		case err := <-p.ended:
			return err
		case <-ctx.Done():
			return err
		case <-time.After(pollEvery):
		}
	}
}
