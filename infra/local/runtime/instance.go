package runtime

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"signalbox.dev/infra/local/child"
)

// instance is one process of a function, with its own Runtime API.
type instance struct {
	config   Config
	function Function
	log      *slog.Logger
	// life ends when the process must be killed.
	life context.Context
	kill context.CancelFunc
	// work hands a request to the pending call of …/invocation/next.
	work chan *invocation
	// exited is closed when the process has ended. cause is then the reason.
	exited chan struct{}
	cause  error
	// used is set after the first request. That an idle instance has ended says nothing about
	// a new one.
	used bool

	current atomic.Pointer[invocation]
}

// invocation is one request to an instance.
type invocation struct {
	id      string
	payload []byte
	done    chan outcome
}

type outcome struct {
	response []byte
	err      error
}

// launch runs the process until it ends.
func (i *instance) launch() {
	defer i.kill()
	i.cause = reason(i.run())
	close(i.exited)
}

// run runs the process until it ends, and returns the reason.
func (i *instance) run() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("opening a port for the Runtime API: %w", err)
	}
	// The process ends before the server, so no request is cut off.
	server := &http.Server{Handler: i.api(), ReadHeaderTimeout: initTime, ErrorLog: slog.NewLogLogger(i.log.Handler(), slog.LevelDebug)}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()

	output, write := io.Pipe()
	var printed sync.WaitGroup
	printed.Go(func() { i.printLines(output) })
	defer printed.Wait()
	defer func() { _ = write.Close() }()
	cmd := exec.CommandContext(i.life, i.function.Binary) //nolint:gosec // the configured program
	cmd.Dir = filepath.Dir(i.function.Binary)
	cmd.Env = i.environment(listener.Addr().String())
	cmd.Stdout, cmd.Stderr = write, write
	return child.Run(cmd)
}

// printLines passes on the lines of the process's output.
func (i *instance) printLines(output io.Reader) {
	for lines := bufio.NewReaderSize(output, maxLineBytes); ; {
		line, _, err := lines.ReadLine()
		if err != nil {
			return
		}
		i.config.Output(i.function.Name, line)
	}
}

// reason is the error of a request if its instance ended with err, before the instance
// asked for work or while it worked.
func reason(err error) error {
	ended, isExit := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return &FunctionError{Type: "Runtime.ExitError", Message: "Runtime exited without providing a reason"}
	case isExit:
		return &FunctionError{Type: "Runtime.ExitError", Message: "Runtime exited with error: " + ended.Error()}
	}
	return &FunctionError{Type: "Runtime.InvalidEntrypoint", Message: err.Error()}
}

// accept gives the request to the instance. False means that the instance has ended, or was
// killed because it did not ask for work in time.
func (i *instance) accept(call *invocation) bool {
	late := time.NewTimer(initTime)
	defer late.Stop()
	select {
	case i.work <- call:
		return true
	case <-i.exited:
	case <-late.C:
		i.kill()
		<-i.exited
	}
	return false
}

// finish waits for the answer, the end of the process or the time-out.
func (i *instance) finish(call *invocation) ([]byte, error) {
	timeout := time.NewTimer(i.function.Timeout)
	defer timeout.Stop()
	select {
	case o := <-call.done:
		return o.response, o.err
	case <-i.exited:
	case <-timeout.C:
		i.kill()
		<-i.exited
		i.log.Error("time-out", "lambda_request_id", call.id, "seconds", i.function.Timeout.Seconds())
		return nil, &FunctionError{
			Type:    "Sandbox.Timedout",
			Message: fmt.Sprintf("RequestId: %s Error: Task timed out after %.2f seconds", call.id, i.function.Timeout.Seconds()),
		}
	}
	// It may have answered just before it ended.
	select {
	case o := <-call.done:
		return o.response, o.err
	default:
		i.log.Error("crash", "lambda_request_id", call.id, "error", i.cause.Error())
		return nil, i.cause
	}
}
