package main

import (
	"context"
	"io"
)

// Main is the command; the test binary runs it.
func Main() { main() }

// Run runs the command with these arguments, without its output.
func Run(ctx context.Context, arguments []string) error {
	return run(ctx, arguments, io.Discard, io.Discard)
}
