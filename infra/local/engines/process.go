package engines

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"signalbox.dev/infra/local/child"
	"signalbox.dev/infra/local/port"
)

const (
	pollEvery = 5 * time.Millisecond
	// stopTime is short: versitygw waits for its idle connections to be closed,
	// and every engine is one that a SIGKILL takes nothing from.
	stopTime = 300 * time.Millisecond
	// starts bounds how often in a row an engine is started that ends at once.
	starts = 3
	// answerTime bounds how long an engine may take to answer: a Java program on a
	// loaded machine. ExtendDB tries for ever to open a damaged database.
	answerTime = 2 * time.Minute
)

// errEnded says that an engine ended before it answered.
var errEnded = errors.New("it ended")

// program is how an engine is run.
type program struct {
	name string
	// dir is its folder; its output goes to a file there.
	dir string
	// health is a path that it answers, with whatever status, once it is up.
	health string
	// check, if there is one, checks its folder before the first start.
	check func() error
	// command listens on the port.
	command func(port string) *exec.Cmd
}

// process is an engine that runs as a child.
type process struct {
	program program
	port    string
	url     string // what it answers to
	cmd     *exec.Cmd
	ended   chan struct{} // closed when it has ended, for whatever reason
	stopped atomic.Bool   // by stop
	err     error         // why it ended; to be read after ended
}

// start runs the program on a free port until it answers. Where it
// ends at once, it gets another port: another program may have been faster.
func (p program) start(ctx context.Context) (*process, error) {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of %s: %w", p.name, err)
	}
	if p.check != nil {
		if err := p.check(); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(p.log(), nil, 0o600); err != nil {
		return nil, fmt.Errorf("emptying the log of %s: %w", p.name, err)
	}
	return insist(func() (*process, error) {
		free, err := port.Free()
		if err != nil {
			return nil, err
		}
		return p.launch(ctx, free)
	})
}

// insist tries again if the engine ended before it answered.
func insist(try func() (*process, error)) (*process, error) {
	for attempt := 1; ; attempt++ {
		started, err := try()
		if attempt == starts || !errors.Is(err, errEnded) {
			return started, err
		}
	}
}

func (p program) log() string { return filepath.Join(p.dir, p.name+".log") }

// launch runs the program on the port until it answers. Its output goes to the end of its
// log: the one before may have written there why it ended.
func (p program) launch(ctx context.Context, port string) (*process, error) {
	cmd, url := p.command(port), "http://"+net.JoinHostPort(host, port)
	log, err := os.OpenFile(p.log(), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", p.name, err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	running := &process{program: p, port: port, url: url, cmd: cmd, ended: make(chan struct{})}
	started := make(chan struct{})
	go func() {
		defer close(running.ended)
		running.err = child.Run(cmd, func() { close(started) })
		_ = log.Close()
	}()
	select {
	case <-started:
	case <-running.ended:
		if cmd.Process == nil {
			return nil, running.err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := running.answers(ctx, url+p.health); err != nil {
		running.stop()
		return nil, fmt.Errorf("%s does not answer (see %s): %w", p.name, log.Name(), err)
	}
	return running, nil
}

// answers waits until the URL answers, the process ends or ctx does. If another program
// was faster on the port, the process cannot listen, and ends.
func (p *process) answers(ctx context.Context, url string) error {
	direct := &http.Transport{} // whatever proxy the environment names
	defer direct.CloseIdleConnections()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		answer, err := direct.RoundTrip(request)
		if err == nil {
			return answer.Body.Close()
		}
		select {
		case <-p.ended:
			if p.err == nil {
				return errEnded
			}
			return fmt.Errorf("%w: %w", errEnded, p.err)
		case <-ctx.Done():
			return err
		case <-time.After(pollEvery):
		}
	}
}

// stop asks the process to end. If it does not, stop kills it with everything that it
// started.
func (p *process) stop() {
	p.stopped.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.ended:
	case <-time.After(stopTime):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it leads its group
		<-p.ended
	}
}
