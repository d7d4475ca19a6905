package engines

import (
	"context"
	"fmt"
)

// keep restarts an engine that ended unexpectedly, by a kill -9 for instance, on
// the same port. What it had acknowledged is on disk; clients that retry for long
// enough notice nothing. It may be killed while it is starting, too. keep returns
// soon after the context has ended.
func (e *Engines) keep(ctx context.Context, i int, c Config) {
	for {
		p := e.process(i)
		<-p.ended
		if p.stopped.Load() {
			return
		}
		c.Log.Warn("an engine ended; it is started again", "engine", p.program.name, "error", p.err, "engine_log", p.program.log())
		again, err := insist(func() (*process, error) { return p.program.launch(ctx, p.port) })
		if err != nil && ctx.Err() != nil {
			return
		}
		if err != nil {
			e.done <- fmt.Errorf("starting %s again: %w", p.program.name, err)
			return
		}
		if !e.replace(i, again) {
			again.stop()
			return
		}
	}
}

func (e *Engines) process(i int) *process {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.processes[i]
}

// replace reports false if the engines were closed.
func (e *Engines) replace(i int, p *process) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.processes[i] = p
	}
	return !e.closed
}
