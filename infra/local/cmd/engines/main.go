// Command engines runs only the engines of the local server, for
// tests: it prints one line of JSON with their addresses, and stops them
// when its standard input ends or a signal arrives.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"signalbox.dev/infra/local/engines"
)

// startTime is long enough for a Python program on a loaded machine.
const startTime = 150 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, stdin io.Reader, stdout io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "signalbox-engines-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	starting, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	running, err := engines.Start(starting, engines.Config{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, running.Close()) }()
	if err := json.NewEncoder(stdout).Encode(running.Engines); err != nil {
		return err
	}
	closed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	case err := <-running.Done():
		return err
	}
	return nil
}
