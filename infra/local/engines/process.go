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
)

const (
	pollEvery = 5 * time.Millisecond
	// stopTime is short: versitygw waits for its idle connections to be closed,
	// and every engine is one that a SIGKILL takes nothing from.
	stopTime = 300 * time.Millisecond
)

// process is an engine that runs as a child.
type process struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended, for whatever reason
	told  atomic.Bool   // it was told to end
	err   error         // why; to be read after ended
}

// launch starts the command with its output in a file of its folder and waits
// until the URL answers.
func launch(ctx context.Context, name string, cmd *exec.Cmd, dir, url string) (*process, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of %s: %w", name, err)
	}
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	p := &process{name: name, cmd: cmd, ended: make(chan struct{})}
	started := make(chan struct{})
	go func() {
		defer close(p.ended)
		p.err = child.Run(cmd, func() { close(started) })
		_ = log.Close()
	}()
	select {
	case <-started:
	case <-p.ended:
		return nil, p.err
	}
	if err := p.answers(ctx, url); err != nil {
		return nil, errors.Join(fmt.Errorf("%s does not answer (see %s): %w", name, log.Name(), err), p.stop())
	}
	return p, nil
}

// answers waits until the URL gives any answer, the process ends or ctx does.
func (p *process) answers(ctx context.Context, url string) error {
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			return answer.Body.Close()
		}
		select {
		case <-p.ended:
			return fmt.Errorf("it ended: %w", p.err)
		case <-ctx.Done():
			return err
		case <-time.After(pollEvery):
		}
	}
}

// stop asks the process to end, and ends it where it does not.
func (p *process) stop() error {
	p.told.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.ended:
	case <-time.After(stopTime):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	return nil
}

// freePort is a port that was free a moment ago. An engine cannot be handed a
// socket; should somebody else be faster, its start fails and says so.
func freePort(host string) (string, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}
