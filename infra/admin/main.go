// Command admin is the operator's command of Signalbox. It manages accounts,
// workspaces, API keys, sync jobs, files and stored credentials, in the
// local server or in a deployed stack.
//
// It shows an API key once, when it is made, and never shows a provider key. Every change
// leaves an audit line on standard error, with the user, the action, its object and the
// outcome.
//
// It trusts its user, who has the files of the local server, or AWS
// credentials that may write the stack's tables and bucket.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/infra/admin/target"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE) // without a reader a write fails, but the command goes on
	code := newApp(os.Stdin, os.Stdout, os.Stderr).run(ctx, newParser(), os.Args[1:])
	stop()
	os.Exit(code)
}

// commandLine is the table of commands and flags. A command without the tag
// `reads` changes something, so its target is named before it runs.
type commandLine struct {
	Help      helpFlag    `short:"h" help:"Show help."`
	Version   versionFlag `help:"Show the version."`
	Local     *string     `xor:"target" placeholder:"DIR" help:"Work on the local server whose state is in DIR. It must be running. Without --local and --stack: the stack that SIGNALBOX_STACK names, else DIR .local."`
	Stack     *string     `xor:"target" placeholder:"NAME" help:"Work on the deployed stack NAME, with the AWS credentials of your environment."`
	Region    string      `placeholder:"REGION" help:"The region of the stack, if it is not your default."`
	JSON      bool        `name:"json" xor:"form" help:"Write JSON for scripts instead of tables, with whole ids and hashes and all times; errors too, as {\"error\":{\"message\":…}} on standard error."`
	Quiet     bool        `short:"q" xor:"form" help:"Write only the ids or hashes of what is shown, whole, one a line."`
	AuditFile string      `env:"SIGNALBOX_AUDIT_FILE" type:"path" placeholder:"FILE" help:"Append the audit line of each change to FILE as JSON. A terminal then gets one line for all of them."`

	Status     statusCommand        `cmd:"" reads:"" anywhere:"" help:"Show which target, account and version the commands would use."`
	Account    accountCommands      `cmd:"" help:"Accounts."`
	Workspace  workspaceCommands    `cmd:"" help:"Workspaces."`
	Key        keyCommands          `cmd:"" help:"API keys."`
	Job        jobCommands          `cmd:"" help:"Directory sync jobs."`
	File       fileCommands         `cmd:"" help:"Files."`
	Credential credentialCommands   `cmd:"" help:"Stored provider credentials."`
	Restore    restoreCommands      `cmd:"" help:"The tables after a restore."`
	Completion arguments.Completion `cmd:"" help:"Write a completion script for your shell."`
}

// run executes one command line and returns the exit code.
func (a *app) run(ctx context.Context, p *parser, args []string) int {
	ctx = acts.Watched(ctx)
	command, err := a.parse(p, args)
	if err == nil {
		err = a.carryOut(ctx, &p.given, command)
	}
	return a.report(ctx, err, args)
}

// report writes the error of a command line, and returns the exit code.
func (a *app) report(ctx context.Context, err error, args []string) int {
	if err == nil || errors.Is(err, arguments.ErrShown) {
		return acts.Done
	}
	code := acts.Code(err, acts.Tried(ctx))
	if acts.Is[*kong.ParseError](err) {
		code = acts.Usage
	}
	if errors.Is(err, syscall.EPIPE) && (code == acts.Failed || code == acts.Usage) {
		return acts.Failed // the reader has stopped reading, as in `admin key list | head -1`
	}
	given := append(slices.Clone(args), os.Getenv("SIGNALBOX_ACCOUNT")) // kong reads it, too
	message := arguments.Hide(err, sentence(err, code), given)
	if arguments.AsksForJSON(args) {
		_ = output.Writer{To: a.stderr}.Encode(map[string]any{"error": map[string]string{"message": message}}) // there is nowhere else to report it
	} else {
		_, _ = fmt.Fprintln(a.stderr, "admin:", output.OneLine(message))
	}
	return code
}

// sentence returns an error, which has this exit code, for people.
func sentence(err error, code int) string {
	switch {
	case acts.Is[*processcreds.ProviderError](err):
		return "there are no AWS credentials: the credential_process of the profile failed, and what it wrote may hold a secret. Run it yourself"
	case acts.Is[*kong.ParseError](err):
		return err.Error() + " (try --help)"
	}
	return acts.ErrorText(err, code == acts.Failed)
}

// parser is kong's parser, and the command line that it fills.
type parser struct {
	*kong.Kong
	given commandLine
}

// newParser makes a parser. The flags' lists of states have their source in keyStates.
func newParser() *parser {
	states := each(keyStates, func(state keyState) string { return string(state) })
	p := &parser{}
	p.Kong = kong.Must(&p.given, append(arguments.Options(),
		kong.Vars{"keyStates": strings.Join(states, ",")},
		kong.Name("admin"),
		kong.Description("Operate Signalbox: a deployed stack, or the local server."),
		kong.NoDefaultHelp(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, FlagsLast: true, WrapUpperBound: 100}),
	)...)
	return p
}

// parse reads a command line, or answers one that needs no target.
func (a *app) parse(parser *parser, args []string) (*kong.Context, error) {
	parser.Stdout, parser.Stderr = a.stdout, a.stderr
	if len(args) > 0 && args[0] == arguments.CompleteWord {
		return nil, cmp.Or(arguments.Complete(a.stdout, parser.Model.Node, args[1:]), arguments.ErrShown)
	}
	command, err := parser.Parse(args)
	if usage, ok := errors.AsType[*kong.ParseError](err); ok && bare(usage) {
		return nil, cmp.Or(usage.Context.PrintUsage(false), arguments.ErrShown)
	}
	return command, err
}

// carryOut chooses the target of a command, and runs it.
func (a *app) carryOut(ctx context.Context, given *commandLine, command *kong.Context) error {
	t, err := target.Choose(given.Local, given.Stack, given.Region)
	if err != nil {
		return err
	}
	if t.IsLocal() {
		if err := t.ConnectLocal(); err != nil {
			return err
		}
	}
	if err := t.ChooseAccount(command.Selected()); err != nil {
		return err
	}
	return a.work(ctx, t, given, command)
}

func (a *app) work(ctx context.Context, t *target.Target, given *commandLine, command *kong.Context) error {
	isChange := !command.Selected().Tag.Has("reads")
	var audits io.Writer
	if given.AuditFile != "" && isChange {
		// Without O_NONBLOCK, opening a pipe without a reader would wait, and no signal would end it.
		file, err := os.OpenFile(given.AuditFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY|syscall.O_NONBLOCK, 0o600)
		if err != nil {
			return acts.UsageError(fmt.Sprintf("--audit-file: %v; nothing was done", errors.Unwrap(err))) // without the path, which may be a secret
		}
		defer func() { _ = file.Close() }()                                                               // each line was written, or its failure reported
		defer context.AfterFunc(ctx, func() { _ = file.SetWriteDeadline(time.Now().Add(time.Second)) })() // of a full pipe
		audits = file
	}
	if !t.IsLocal() {
		if err := t.ConnectStack(ctx, func() (string, error) { return a.code(ctx) }); err != nil {
			return err
		}
	}
	s := a.session(t, output.Writer{To: a.stdout, JSON: given.JSON, Quiet: given.Quiet, Width: a.width, Now: a.now()}, audits)
	if isChange {
		s.Note("%s", t.Announcement())
	}
	command.BindTo(ctx, (*context.Context)(nil))
	err := s.completeIDs(ctx, command)
	if err == nil {
		err = command.Run(s)
	}
	err = t.Explain(err)
	if s.filed > 0 {
		s.Note("audit: %s in %s", acts.Count(s.filed, "line"), given.AuditFile)
	}
	if err != nil && s.Lost() != nil {
		s.Note("%v", s.Lost())
	}
	return cmp.Or(err, s.Lost())
}

// code asks for the code of an MFA device, which the operator's profile needs.
func (a *app) code(ctx context.Context) (string, error) {
	if !a.interactive {
		return "", acts.UsageError("the AWS profile needs the code of an MFA device, and there is no terminal to ask for it: " +
			"run `eval \"$(aws configure export-credentials --format env)\"` in your shell first")
	}
	_, _ = fmt.Fprint(a.stderr, "Code of your MFA device: ")
	return a.line(ctx)
}

// bare reports whether a command line names no command and has no other mistake.
func bare(usage *kong.ParseError) bool {
	c := usage.Context
	return !errors.Is(usage, arguments.ErrShown) && c != nil && c.Error == nil && c.Selected() == nil
}

type helpFlag bool

// BeforeReset implements a hook of kong's.
func (helpFlag) BeforeReset(c *kong.Context) error {
	return cmp.Or(c.PrintUsage(false), arguments.ErrShown)
}

type versionFlag bool

// BeforeReset implements a hook of kong's.
func (versionFlag) BeforeReset(c *kong.Context) error {
	_, err := fmt.Fprintln(c.Stdout, "admin", version)
	return cmp.Or(err, arguments.ErrShown)
}
