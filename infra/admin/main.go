// Command admin is the operator's command of Signalbox: accounts, workspaces,
// API keys, sync jobs, files and stored credentials, in the single-machine
// edition or in a deployed stack.
//
// It guards two things. An API key is shown once, when it is made, and a
// provider key never. And every change leaves an audit line on standard error:
// who, what, on what, with which outcome.
//
// It trusts its user: the files of the local edition, or AWS
// credentials that may write the stack's tables and bucket.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return newApp(stdin, stdout, stderr).run(ctx, args)
}
