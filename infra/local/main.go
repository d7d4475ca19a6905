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

	"signalbox.dev/infra/local/demo"
	"signalbox.dev/infra/local/server"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // if nobody reads its log, the server still serves
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		if ctx.Err() == nil && !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "local:", err)
		}
		os.Exit(1)
	}
}

// run starts the local server, prints the banner, and waits.
func run(ctx context.Context, arguments []string, out io.Writer) error {
	s, err := parse(arguments, out)
	if err != nil {
		return err
	}
	if s.reset {
		return server.Reset(s.State)
	}
	e, err := server.Start(ctx, s.Options)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, banner(e, cmp.Or(s.shown, e.BaseURL), s.State))
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
`, baseURL, strings.TrimSuffix(e.BaseURL, "/api/v1"), variables, strings.Join(demo.Curls(), "\n\n  "), state, filepath.Join(state, "logs")) +
		"Stop:   Ctrl-C keeps the state;\n        `make reset` removes it\n\n"
}

// quoted is a path as a word of a shell.
func quoted(path string) string {
	if !strings.ContainsAny(path, " '\"$`\\*?[](){}<>|&;!#~") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// settings are the arguments of the command.
type settings struct {
	server.Options
	reset bool   // remove the state, and stop
	shown string // the base URL in the banner
}

func parse(arguments []string, out io.Writer) (settings, error) {
	s := settings{Options: server.Options{Port: 3000, Parameters: make(map[string]string)}}
	flags := flag.NewFlagSet("local", flag.ContinueOnError)
	flags.StringVar(&s.Root, "root", ".", "folder of the repository")
	flags.StringVar(&s.State, "state", ".local", "folder for everything that is kept")
	flags.Func("port", "port on 127.0.0.1 and ::1 (default 3000); 0 means any", s.setPort)
	flags.Func("param", "Name=Value of a parameter of template.yaml; repeatable", s.setParameter)
	quiet := flags.Bool("quiet", false, "print no line for each request")
	flags.StringVar(&s.shown, "shown", "", "base URL in the printed calls (default: the local server's own)")
	flags.BoolVar(&s.reset, "reset", false, "remove the state folder, and stop")
	flags.SetOutput(io.Discard) // main prints the error
	err := flags.Parse(arguments)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(out)
		flags.PrintDefaults()
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	if !*quiet {
		s.Terminal = out
	}
	return s, err
}

func (s *settings) setPort(text string) error {
	port, err := strconv.Atoi(text)
	if err != nil {
		return errors.New("want a number: make run PORT=3000")
	}
	s.Port = port
	return nil
}

func (s *settings) setParameter(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("want Name=Value")
	}
	s.Parameters[name] = value
	return nil
}
