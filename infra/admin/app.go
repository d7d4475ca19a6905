package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/alecthomas/kong"

	"signalbox.dev/shared/ids"
)

// commandLine is all that can be said to the command.
type commandLine struct {
	Help   helpFlag `short:"h" help:"Show what can be said here."`
	Local  string   `default:".local" placeholder:"DIR" help:"Work on the single-machine edition whose state is in DIR (${default}). It must be running."`
	Stack  string   `env:"SIGNALBOX_STACK" placeholder:"NAME" help:"Work on the deployed stack NAME instead, with the AWS credentials of your environment."`
	Region string   `placeholder:"REGION" help:"The region of the stack, if it is not your default."`
	JSON   bool     `name:"json" help:"Write JSON for scripts instead of tables."`

	Account    accountCommands    `cmd:"" help:"Accounts."`
	Workspace  workspaceCommands  `cmd:"" help:"Workspaces."`
	Key        keyCommands        `cmd:"" help:"API keys."`
	Job        jobCommands        `cmd:"" help:"Directory sync jobs."`
	File       fileCommands       `cmd:"" help:"Files."`
	Credential credentialCommands `cmd:"" aliases:"credentials" help:"Stored provider credentials."`
	Restore    restoreCommands    `cmd:"" help:"The tables after a restore."`
}

// owner names the account that a command acts for. What is not that account's
// is not found.
type owner struct {
	Account ids.Account `required:"" env:"SIGNALBOX_ACCOUNT" placeholder:"ID" help:"The account this is about."`
}

// place names a workspace of an account.
type place struct {
	owner
	Workspace ids.Workspace `placeholder:"ID" help:"The workspace; if left out, the account's default."`
}

// app is the command, with what tests replace.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	now            func() time.Time
	pause          func(context.Context, time.Duration) error
	// terminal says that somebody watches stderr.
	terminal bool
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *app {
	return &app{stdin: stdin, stdout: stdout, stderr: stderr, now: time.Now, pause: pause, terminal: isTerminal(stderr)}
}

func (a *app) run(ctx context.Context, args []string) int {
	err := a.execute(ctx, args)
	if err == nil || errors.Is(err, errHelpShown) {
		return exitDone
	}
	_, _ = fmt.Fprintln(a.stderr, "admin:", sentence(err)) // nowhere else to tell it
	return exitCode(err)
}

func (a *app) execute(ctx context.Context, args []string) error {
	var said commandLine
	parser, err := kong.New(&said,
		kong.Name("admin"),
		kong.Description("Operate Signalbox: the single-machine edition by default, a deployed stack with --stack."),
		kong.Writers(a.stdout, a.stderr),
		kong.NoDefaultHelp(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, Tree: true, WrapUpperBound: 100}),
		uuids[ids.Account](), uuids[ids.Workspace](), uuids[ids.Job](), uuids[ids.Credential](), fileIDs(), parsed(parseKeyARN),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		return err
	}
	command, err := parser.Parse(args)
	if err != nil {
		return err
	}
	target, err := chooseTarget(ctx, said)
	if err != nil {
		return err
	}
	return command.Run(a.session(target, said.JSON))
}

// pause waits, and no longer than the context lasts.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// helpFlag shows help and ends the parsing.
type helpFlag bool

// errHelpShown ends a command line that only asked for help.
var errHelpShown = errors.New("help was shown")

// BeforeReset implements a hook of kong's.
func (helpFlag) BeforeReset(c *kong.Context) error {
	if err := c.PrintUsage(false); err != nil {
		return err
	}
	return errHelpShown
}
