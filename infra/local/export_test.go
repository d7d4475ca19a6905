package main

import (
	"context"
	"io"
)

// Main is the command itself, for the test binary to be.
func Main() { main() }

// Run runs the command with these arguments, and shows nothing.
func Run(ctx context.Context, arguments []string) error {
	return run(ctx, arguments, io.Discard, io.Discard)
}
