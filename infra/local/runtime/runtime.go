// Package runtime runs unmodified Lambda functions on this machine: programs
// that get their work from the Lambda Runtime API (version 2018-06-01). Like
// Lambda, it gives an instance one request at a time, and starts instances on
// demand up to a limit. The environment has no variable of the user's shell. A
// time-out kills the instance. A request has at most 6 MB. A crash fails only the
// request during which it happened.
package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"signalbox.dev/shared/ids"
)

// Lambda's own limits.
const (
	// MaxPayload bounds a request.
	MaxPayload = 6 << 20
	initTime   = 10 * time.Second
	// maxLineBytes bounds a line of a log: a longer one is cut.
	maxLineBytes = 256 << 10
)

// Errors of Invoke, in addition to *FunctionError. A request with such an error did not
// reach the function.
var (
	// ErrThrottled means that every instance was busy for too long.
	ErrThrottled = errors.New("too many requests")
	// ErrTooLarge means that the request exceeds MaxPayload.
	ErrTooLarge = errors.New("request larger than 6 MB")
	// ErrClosed means that the runtime was closed.
	ErrClosed = errors.New("runtime closed")
)

// FunctionError is the error of a function that reported one, ended, or took too
// long.
type FunctionError struct {
	Type    string // such as Runtime.ExitError or Sandbox.Timedout
	Message string // the function's own or Lambda's
}

func (e *FunctionError) Error() string { return e.Type + ": " + e.Message }

// Function is one function as the template configures it.
type Function struct {
	Name     string // the logical id
	Binary   string // the path of the program, called bootstrap by convention
	Handler  string
	MemoryMB int
	Timeout  time.Duration
	// Environment holds the function's own variables. Lambda's win over them.
	Environment map[string]string
}

// Config configures a runtime.
type Config struct {
	Functions []Function
	Region    string
	Account   string
	// Instances bounds the instances of each function. Zero means 10.
	Instances int
	// Wait bounds how long a request waits for an instance. Zero means 10 s.
	Wait time.Duration
	// Output gets each line that an instance writes. It may be called from
	// several goroutines at once.
	Output func(function string, line []byte)
	// Log gets crashes and time-outs.
	Log *slog.Logger
}

// Lambda runs functions.
type Lambda struct {
	config Config
	pools  map[string]*pool
	// life ends with Close. Every instance then ends too.
	life context.Context
	end  context.CancelFunc
	// ended waits for every instance.
	ended sync.WaitGroup

	mu sync.Mutex // guards the idle instances and the start of new ones
}

// pool has the instances of one function.
type pool struct {
	function Function
	// places has a place for each instance that may run.
	places chan struct{}
	// idle instances have no request; some may have ended. The last one goes first
	// because its connections are the freshest.
	idle []*instance
}

// New checks that every function has its program. The first request starts the first
// instance.
func New(c Config) (*Lambda, error) {
	c.Instances, c.Wait = cmp.Or(c.Instances, 10), cmp.Or(c.Wait, 10*time.Second)
	l := &Lambda{config: c, pools: make(map[string]*pool)}
	l.life, l.end = context.WithCancel(context.Background())
	var missing []string
	for _, f := range c.Functions {
		var err error
		if f.Binary, err = filepath.Abs(f.Binary); err != nil {
			return nil, err
		}
		info, err := os.Stat(f.Binary)
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			missing = append(missing, f.Binary)
		}
		l.pools[f.Name] = &pool{function: f, places: make(chan struct{}, c.Instances)}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("no program at %s", strings.Join(missing, ", "))
	}
	return l, nil
}

// Invoke returns the answer of a configured function to the payload. After an error that
// is neither this package's nor the context's, the function may have done its work.
func (l *Lambda) Invoke(ctx context.Context, name string, payload []byte) ([]byte, error) {
	p := l.pools[name]
	if len(payload) > MaxPayload {
		return nil, ErrTooLarge
	}
	waiting, cancel := context.WithTimeoutCause(ctx, l.config.Wait, ErrThrottled)
	defer cancel()
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	case <-waiting.Done():
		return nil, context.Cause(waiting)
	}
	call := &invocation{id: ids.New[string](), payload: payload, done: make(chan outcome, 1)}
	for {
		i, err := l.instance(p)
		if err != nil {
			return nil, err
		}
		if i.accept(call) {
			defer l.release(p, i)
			return i.finish(call)
		}
		if !i.used {
			return nil, i.cause
		}
	}
}

// instance returns an idle instance, or a new one.
func (l *Lambda) instance(p *pool) (*instance, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.Err() != nil {
		return nil, ErrClosed
	}
	if last := len(p.idle) - 1; last >= 0 {
		i := p.idle[last]
		p.idle = p.idle[:last]
		return i, nil
	}
	i := &instance{
		config: l.config, function: p.function, log: l.config.Log.With("function", p.function.Name),
		work: make(chan *invocation), exited: make(chan struct{}),
	}
	i.life, i.kill = context.WithCancel(l.life)
	l.ended.Go(i.launch)
	return i, nil
}

func (l *Lambda) release(p *pool, i *instance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i.used = true
	p.idle = append(p.idle, i)
}

// Close ends every instance, busy or not, and waits until all have ended.
func (l *Lambda) Close() {
	l.mu.Lock()
	l.end()
	l.mu.Unlock()
	l.ended.Wait()
}
