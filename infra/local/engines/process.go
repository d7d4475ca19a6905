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

// errEnded means that an engine ended before it answered.
var errEnded = errors.New("it ended")

// program describes the process of an engine.
type program struct {
	name string
	// dir is its folder; its output goes to a file there.
	dir string
	// health is a path that it answers, with any status, once it is ready.
	health string
	// check, if there is one, checks its folder before the first start.
	check func() error
	// command listens on the port. It ends with the context.
	command func(ctx context.Context, port string) *exec.Cmd
}

func (p program) log() string { return filepath.Join(p.dir, p.name+".log") }

func urlOf(port string) string { return "http://" + net.JoinHostPort(host, port) }

// start starts the program on a free port and returns its URL when it answers. Until Close
// it is started again if it ends.
func (e *Engines) start(ctx context.Context, p program) (string, error) {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return "", fmt.Errorf("making the folder of %s: %w", p.name, err)
	}
	if p.check != nil {
		if err := p.check(); err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(p.log(), nil, 0o600); err != nil {
		return "", fmt.Errorf("emptying the log of %s: %w", p.name, err)
	}
	at, ended, err := e.insist(ctx, p, "")
	if err != nil {
		return "", err
	}
	e.running.Go(func() { e.keep(p, at, ended) })
	return urlOf(at), nil
}

// keep starts an engine that ended unexpectedly, for instance by a kill -9, again on the
// same port. Acknowledged changes are on disk, and clients that retry for long enough
// notice nothing. A kill during the start is allowed too.
func (e *Engines) keep(p program, at string, ended <-chan error) {
	for {
		err := <-ended
		if e.life.Err() != nil {
			return
		}
		e.log.Warn("an engine ended; it is started again", "engine", p.name, "error", err, "engine_log", p.log())
		if _, ended, err = e.insist(e.life, p, at); err != nil {
			if e.life.Err() == nil {
				e.done <- fmt.Errorf("starting %s again: %w", p.name, err)
			}
			return
		}
	}
}

// insist launches the program, and again if it ends before it answers. An empty port means
// any, each time another one: another program may have been faster.
func (e *Engines) insist(ctx context.Context, p program, port string) (at string, ended <-chan error, err error) {
	for range starts {
		if at = port; at == "" {
			if at, err = child.FreePort(); err != nil {
				return "", nil, err
			}
		}
		if ended, err = e.launch(ctx, p, at); !errors.Is(err, errEnded) {
			return at, ended, err
		}
	}
	return "", nil, err
}

// launch runs the program on the port, and returns when it answers. ended later gets the
// reason of its end. Its output is appended to its log: the previous process may have
// written there why it ended.
func (e *Engines) launch(ctx context.Context, p program, port string) (<-chan error, error) {
	log, err := os.OpenFile(p.log(), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", p.name, err)
	}
	life, stop := context.WithCancel(e.life)
	cmd := p.command(life, port)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTime
	ended := make(chan error, 1)
	e.running.Go(func() {
		ended <- child.Run(cmd, func() {})
		stop()
		_ = log.Close()
	})
	if err := answers(ctx, urlOf(port)+p.health, ended); err != nil {
		stop()
		return nil, fmt.Errorf("%s does not answer (see %s): %w", p.name, log.Name(), err)
	}
	return ended, nil
}

// answers waits until the URL answers, the process ends or ctx ends. If another program
// took the port first, the process cannot listen, and ends.
func answers(ctx context.Context, url string, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	direct := &http.Transport{} // it uses no proxy, even if the environment names one
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
		case reason := <-ended:
			if reason == nil {
				return errEnded
			}
			return fmt.Errorf("%w: %w", errEnded, reason)
		case <-ctx.Done():
			return err
		case <-time.After(pollEvery):
		}
	}
}
