package runtime

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"signalbox.dev/infra/local/child"
)

// instance is one process of a function, with its own Runtime API.
type instance struct {
	function Function
	arn      string
	log      *slog.Logger
	pool     *pool
	cmd      *exec.Cmd
	// work hands a request to the pending call of …/invocation/next.
	work chan *invocation
	// exited is closed when the process has ended; cause is then its reason.
	exited chan struct{}
	cause  error
	// ready is set once the process has requested work; the pool guards it.
	ready bool

	mu      sync.Mutex
	current *invocation
	// failed is the process's report to …/init/error.
	failed *FunctionError
}

// invocation is one request on its way through an instance.
type invocation struct {
	id       string
	trace    string
	payload  []byte
	deadline time.Time
	done     chan outcome
}

type outcome struct {
	response []byte
	err      error
}

// launch runs one instance until it ends.
func (l *Lambda) launch(f Function, p *pool) {
	i := &instance{
		function: f, arn: l.config.arn(f), log: l.config.Log.With("function", f.Name), pool: p,
		work: make(chan *invocation), exited: make(chan struct{}),
	}
	err := l.run(i)
	i.cause = i.reason(err)
	close(i.exited)
	p.remove(i, i.cause)
}

// run runs the process until its end, and returns the reason.
func (l *Lambda) run(i *instance) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("opening a port for the Runtime API: %w", err)
	}
	// The process dies before the server does: no request is cut.
	server := &http.Server{Handler: i.api(), ReadHeaderTimeout: initTime, ErrorLog: slog.NewLogLogger(i.log.Handler(), slog.LevelDebug)}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()

	output := &lines{emit: func(line []byte) { l.config.Output(i.function.Name, line) }}
	defer output.flush()
	stream := time.Now().UTC().Format("2006/01/02/") + "[" + version + "]" + uuid.NewString()
	i.cmd = exec.Command(i.function.Binary) //nolint:gosec // the configured program
	i.cmd.Dir = filepath.Dir(i.function.Binary)
	i.cmd.Env = l.config.environment(i.function, listener.Addr().String(), stream)
	i.cmd.Stdout, i.cmd.Stderr = output, output

	var late *time.Timer
	err = child.Run(i.cmd, func() {
		if !i.pool.add(i) {
			i.kill()
		}
		late = time.AfterFunc(initTime, i.killUnlessReady)
	})
	if late != nil {
		late.Stop()
	}
	return err
}

// kill has no effect, and its error no meaning, once the process has ended.
func (i *instance) kill() { _ = i.cmd.Process.Kill() }

func (i *instance) killUnlessReady() {
	i.pool.mu.Lock()
	defer i.pool.mu.Unlock()
	if !i.ready {
		i.kill()
	}
}

// reason is the error of a request if its instance ended before it requested work, or while
// it worked.
func (i *instance) reason(err error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.failed != nil {
		return i.failed
	}
	var ended *exec.ExitError
	switch {
	case err == nil:
		return &FunctionError{Type: "Runtime.ExitError", Message: "Runtime exited without providing a reason"}
	case errors.As(err, &ended):
		return &FunctionError{Type: "Runtime.ExitError", Message: "Runtime exited with error: " + ended.Error()}
	default:
		return &FunctionError{Type: "Runtime.InvalidEntrypoint", Message: err.Error()}
	}
}

// accept hands the request over. False means that the instance had ended before.
func (i *instance) accept(call *invocation) bool {
	call.deadline = time.Now().Add(i.function.Timeout)
	select {
	case i.work <- call:
		return true
	case <-i.exited:
		return false
	}
}

// finish waits for the answer, the end of the process or the time-out.
func (i *instance) finish(call *invocation) ([]byte, error) {
	timeout := time.NewTimer(time.Until(call.deadline))
	defer timeout.Stop()
	select {
	case o := <-call.done:
		return o.response, o.err
	case <-i.exited:
	case <-timeout.C:
		i.kill()
		<-i.exited
		i.log.Error("time-out", "requestId", call.id, "seconds", i.function.Timeout.Seconds())
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
		i.log.Error("crash", "requestId", call.id, "error", i.cause.Error())
		return nil, i.cause
	}
}
