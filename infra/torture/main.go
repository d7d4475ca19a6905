// Command torture shows what Signalbox promises being kept under conditions in
// which it easily might not be: every call to AWS failing in every way, processes
// killed, many clients at the same few things, and more load than there is room
// for. It prints one table in the end, and ends well only if nothing was broken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "torture:", err)
		}
		os.Exit(1)
	}
}

// errBroken says that a promise was not kept.
var errBroken = errors.New("promises were broken")

// torture is one run of the command.
type torture struct {
	root  string
	dir   string // for the state of services
	seed  uint64
	total time.Duration
	// stderr hears how far it is.
	stderr io.Writer
}

// part is one way to torture.
type part struct {
	name string
	// share of the whole time, in hundredths.
	share int
	run   func(context.Context, *torture, time.Duration) (outcome, error)
}

var parts = []part{
	{"faults", 0, faults}, // as long as it takes
	{"crashes", 20, crashes},
	{"histories", 20, histories},
	{"load", 60, overloads},
}

func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) (err error) {
	t := &torture{stderr: stderr}
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	flags.StringVar(&t.root, "root", ".", "folder of the repository, with everything built in .build")
	minutes := flags.Float64("minutes", 20, "how long it may take, the faults aside")
	flags.Uint64Var(&t.seed, "seed", rand.Uint64(), "what decides by chance; the same seed asks for the same things") //nolint:gosec // no secret
	only := flags.String("only", "", "parts to run, of faults,crashes,histories,load (default all)")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	t.total = time.Duration(*minutes * float64(time.Minute))
	if t.root, err = filepath.Abs(t.root); err != nil {
		return err
	}
	if t.dir, err = os.MkdirTemp("", "signalbox-torture-"); err != nil {
		return err
	}
	outcomes, err := t.all(ctx, chosen)
	if writing := write(stdout, t.seed, outcomes); err == nil {
		err = writing
	}
	if err == nil && slices.ContainsFunc(outcomes, outcome.bad) {
		err = errBroken
	}
	if err != nil {
		return fmt.Errorf("%w; what it left is in %s", err, t.dir)
	}
	return os.RemoveAll(t.dir)
}

func choose(only string) ([]part, error) {
	if only == "" {
		return parts, nil
	}
	var chosen []part
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no part %q", name)
		}
		chosen = append(chosen, parts[i])
	}
	return chosen, nil
}

// all runs the parts one after the other. One that cannot be run does not keep
// the others from it.
func (t *torture) all(ctx context.Context, chosen []part) ([]outcome, error) {
	shares := 0
	for _, p := range chosen {
		shares += p.share
	}
	var outcomes []outcome
	var problems error
	for _, p := range chosen {
		length := t.total * time.Duration(p.share) / time.Duration(max(shares, 1))
		done := t.tell(p.name, length)
		o, err := p.run(ctx, t, length)
		done()
		o.part = p.name
		if err != nil {
			problems = errors.Join(problems, fmt.Errorf("%s: %w", p.name, err))
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, problems
}

// tellEvery is how often it is told how far a part is.
const tellEvery = 30 * time.Second

// tell tells what is being done, and now and then for how long, until done is
// called.
func (t *torture) tell(name string, length time.Duration) (done func()) {
	began := time.Now()
	about := "for as long as it takes"
	if length > 0 {
		about = fmt.Sprintf("for %s and what it takes to start and to look", length.Round(time.Second))
	}
	_, _ = fmt.Fprintf(t.stderr, "%s: %s\n", name, about)
	ended, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		tick := time.NewTicker(tellEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_, _ = fmt.Fprintf(t.stderr, "%s: %s so far\n", name, time.Since(began).Round(time.Second))
			case <-ended:
				return
			}
		}
	}()
	return func() { close(ended); <-told }
}

// state is an empty folder for a service of the part.
func (t *torture) state(name string) (string, error) {
	dir := filepath.Join(t.dir, name)
	return dir, os.MkdirAll(dir, 0o700)
}
