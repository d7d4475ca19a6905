// Command local runs Signalbox on this machine: it serves the operations on
// 127.0.0.1 and ::1, with real engines and a demo account to try them. It runs until
// Ctrl-C. Its state survives that, and kill -9 too.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"signalbox.dev/infra/local/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if ctx.Err() == nil && !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "local:", err)
		}
		os.Exit(1)
	}
}

// run starts the local server, prints the banner, and waits.
func run(ctx context.Context, arguments []string, out, warnings io.Writer) error {
	o, do, err := options(arguments, out)
	if err != nil {
		return err
	}
	o.Warnings = warnings
	if do.reset {
		return server.Reset(ctx, o.State, warnings)
	}
	e, err := server.Start(ctx, o)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, banner(e, cmp.Or(do.shown, e.BaseURL), o.State))
	if err == nil {
		err = e.Wait(ctx)
	}
	return errors.Join(err, e.Close())
}

// banner is printed when everything answers. Its calls go to the base URL. Its lines are
// short, for narrow terminals.
func banner(e *server.Server, baseURL, state string) string {
	variables := ". " + quoted(filepath.Join(state, "demo.env"))
	if baseURL != e.BaseURL {
		variables += "; URL=" + baseURL
	}
	if absolute, err := filepath.Abs(state); err == nil {
		state = absolute
	}
	return fmt.Sprintf(`
Signalbox is at %s
Its reference:  %s/docs

A call of each operation, for another
terminal in this folder:

  %s

  %s

Operate it with .build/admin:

  make admin ARGS='key list'

State:  %s
Logs:   %s
`, baseURL, strings.TrimSuffix(e.BaseURL, "/api/v1"), variables, strings.Join(e.Demo.Curls(), "\n\n  "), state, filepath.Join(state, "logs")) +
		"Stop:   Ctrl-C keeps the state;\n        `make reset` removes it\n\n"
}

// quoted is a path as a word of a shell.
func quoted(path string) string {
	if !strings.ContainsAny(path, " '\"$`\\*?[](){}<>|&;!#~") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// action holds the other arguments.
type action struct {
	reset bool   // remove the state, and stop
	shown string // the base URL in the banner
}

func options(arguments []string, out io.Writer) (o server.Options, do action, err error) {
	o.Parameters = make(map[string]string)
	flags := flag.NewFlagSet("local", flag.ContinueOnError)
	flags.StringVar(&o.Root, "root", ".", "folder of the repository")
	flags.StringVar(&o.State, "state", ".local", "folder for everything that is kept")
	flags.StringVar(&o.Functions, "functions", "", "folder with <logical id>/bootstrap (default <root>/.build/functions)")
	o.Port = 3000
	flags.Func("port", "port on 127.0.0.1 and ::1 (default 3000); 0 means any", func(text string) (err error) {
		if o.Port, err = strconv.Atoi(text); err != nil {
			return errors.New("want a number: make run PORT=3000")
		}
		return nil
	})
	flags.Func("param", "Name=Value of a parameter of template.yaml; repeatable", func(text string) error {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return errors.New("want Name=Value")
		}
		o.Parameters[name] = value
		return nil
	})
	quiet := flags.Bool("quiet", false, "print no line for each request")
	flags.StringVar(&do.shown, "shown", "", "base URL in the printed calls (default: the local server's own)")
	flags.StringVar(&o.DynamoDB, "dynamodb", "", "URL of a DynamoDB that runs already, for a new state folder (default: one of the local server's own)")
	flags.BoolVar(&do.reset, "reset", false, "remove the state folder, and stop")
	flags.SetOutput(io.Discard) // main prints the error
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(out)
			flags.PrintDefaults()
		}
		return o, do, err
	}
	if flags.NArg() > 0 {
		return o, do, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	if !*quiet {
		o.Terminal = out
	}
	return o, do, nil
}
