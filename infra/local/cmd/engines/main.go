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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "signalbox-engines-")
	if err != nil {
		return err
	}
	err = serve(ctx, dir)
	if err != nil && ctx.Err() == nil {
		return err // it may name a log in the folder
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// serve runs the engines in the folder until the context ends, or until an engine ends.
func serve(ctx context.Context, dir string) error {
	// This is long enough for a Python program on a loaded machine.
	starting, cancel := context.WithTimeout(ctx, 150*time.Second)
	defer cancel()
	running, err := engines.Start(starting, engines.Config{Dir: dir})
	if err != nil && ctx.Err() != nil {
		return errors.New("standard input ended, or a signal arrived, before the engines answered")
	}
	if err != nil {
		return err
	}
	defer running.Close()
	if err := json.NewEncoder(os.Stdout).Encode(running.Engines); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-running.Done():
		return err
	}
}
