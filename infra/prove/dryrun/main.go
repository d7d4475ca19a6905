// Command dryrun runs a command that takes the stand-in for AWS, and is itself the
// SAM CLI of that command. It fails where the command fails, and where anything is
// left that a customer would pay for.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"signalbox.dev/infra/prove/standin"
)

func main() {
	if filepath.Base(os.Args[0]) == "sam" {
		os.Exit(standin.Sam(os.Getenv("AWS_ENDPOINT_URL_CLOUDFORMATION"), os.Args[1:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dryrun:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) == 0 {
		return errors.New("usage: dryrun COMMAND [ARGUMENT …]")
	}
	dir, err := os.MkdirTemp("", "prove-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, "sam"))
	}
	if err != nil {
		return err
	}
	aws, err := standin.New(".", dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, aws.Close()) }()
	if err := aws.Live(ctx, "signalbox-live"); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the caller's own
	command.Env = append(append(os.Environ(), aws.Environment()...), "PATH="+dir+":"+os.Getenv("PATH"))
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if left := aws.Left(); len(left) > 0 {
		return fmt.Errorf("left in the account: %q", left)
	}
	return nil
}
