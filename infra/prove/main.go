// Command prove asks AWS what nobody could see without an account. `run` deploys
// stacks of its own, asks every probe, writes a report and removes everything;
// `clean` finishes a removal that was cut short; `verify` asks what can be asked of
// a stack that is in use, with a test account that it removes again; `gateway` asks
// another gateway, such as that of `sam local start-api`, before the functions and
// the state of `make run`; `list` prints the probes.
//
// It guards the account it works in: it changes no stack without its own tag, and
// removes nothing that such a stack did not make.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// Ctrl-C ends `make prove | tee` too: the removal then writes to a closed pipe,
	// and must not end by that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			_, _ = fmt.Fprintln(os.Stderr, "prove:", err)
		}
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	root, stack  string
	architecture string
	yes          bool
	patience     time.Duration
	pace         time.Duration
	suite        bool
	// Of a gateway before the state of `make run`: its URL, the state's folder, its
	// DeleteBurst, and the verdicts that are not PASS, as probe=verdict.
	url, local, burst, expected string

	in          io.Reader
	out, stderr io.Writer
}

// stackName is short, as names of buckets are made of it.
var stackName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`)

var errUsage = errors.New("usage: prove run|clean|verify -stack NAME, prove gateway -url URL, or prove list")

func run(ctx context.Context, args []string, in io.Reader, out, stderr io.Writer) error {
	o := options{in: in, out: out, stderr: stderr}
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet("prove "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.root, "root", ".", "folder of the repository")
	flags.StringVar(&o.stack, "stack", "", "name of the stack")
	flags.StringVar(&o.architecture, "architecture", "arm64", "architecture of the first deployment; the second has the other one")
	flags.BoolVar(&o.yes, "yes", false, "do not ask before starting")
	flags.DurationVar(&o.patience, "patience", 10*time.Minute, "how long to wait for a metric, a log line or a message")
	flags.DurationVar(&o.pace, "pace", 250*time.Millisecond, "pause between two requests while a canary is deployed")
	flags.BoolVar(&o.suite, "contract", true, "run the contract suite")
	flags.StringVar(&o.url, "url", "", "of gateway: the API's base URL")
	flags.StringVar(&o.local, "local", ".local", "of gateway: the state of make run")
	flags.StringVar(&o.burst, "burst", "", "of gateway: its DeleteBurst")
	flags.StringVar(&o.expected, "expected", "", "of gateway: verdicts other than PASS, as probe=VERDICT")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	commands := map[string]func(context.Context, options) error{"run": prove, "clean": cleanUp, "verify": verify, "gateway": gateway}
	command, ok := commands[args[0]]
	switch {
	case args[0] == "list":
		_, err := io.WriteString(out, catalogue())
		return err
	case !ok || flags.NArg() > 0:
		return errUsage
	case args[0] == "gateway" && o.url == "":
		return errors.New("no gateway is named: add -url URL")
	case args[0] != "gateway" && o.stack == "":
		return errors.New("no stack is named: add STACK=NAME")
	}
	var err error
	if o.root, err = filepath.Abs(o.root); err != nil {
		return err
	}
	return command(ctx, o)
}

// check refuses a name or an architecture that cannot be deployed.
func (o options) check() error {
	if !stackName.MatchString(o.stack) {
		return fmt.Errorf("%q: at most 20 lower-case letters, digits and dashes, the first a letter", o.stack)
	}
	if o.architecture != "arm64" && o.architecture != "x86_64" {
		return fmt.Errorf("architecture %q: arm64 or x86_64", o.architecture)
	}
	return nil
}

// plan is what a customer reads before anything is made.
const plan = `make prove, account %s, region %s:

It makes the stacks %s and %s, with the tag %s, the bucket %s and the
queue %s. It sends about 10,000 requests, deploys %[3]s three times (one of them a function that
crashes, to see it taken back) and removes everything, also after Ctrl-C. What AWS lets nobody remove at once stays
and is listed: four KMS keys for 7 days and the system backups of the tables for 35 days, both free of charge.
%[8]s
It takes about 45 minutes, and costs about 0.60 dollars in us-east-1, at most 3:
  requests    10,000 x (3.50 + 0.20 + 5.00 of tables, keys, logs and traces) a million     0.09
  keys        4 x 1.00 a month, for an hour                                                0.01
  alarms      2 x 39 x 0.10 a month, for an hour                                           0.01
  metrics     8 x 0.30 a month, for an hour                                                0.01
  firewall    8.00 a month, for an hour, and 0.60 + 0.30 for each 16 KB a million          0.02
  recovery, storage, SAM's uploads, metric and log requests, message                       0.05
  a run that is repeated, or stays for a whole day before it is removed, at most           0.40

`

// prove is the whole life of the ephemeral stacks.
func prove(ctx context.Context, o options) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	if err := o.vacant(ctx, c); err != nil {
		return err
	}
	l := &lifecycle{
		clients: c, root: o.root, name: o.stack, pace: o.pace, id: time.Now().UTC().Format("20060102-150405-") + newID()[:4], progress: o.stderr,
		architectures: [2]string{o.architecture, map[string]string{"arm64": "x86_64", "x86_64": "arm64"}[o.architecture]},
	}
	l.record = &record{
		Stack: o.stack, Account: c.accountID, Region: c.config.Region, Run: l.id, Started: time.Now().UTC(), path: o.recordPath(),
	}
	if err := l.chooseLoggingRole(ctx); err != nil {
		return err
	}
	if err := o.agree(l); err != nil {
		return err
	}
	// From here on everything is removed again, however this ends.
	defer func() { err = errors.Join(err, o.remove(c, ctx.Err() != nil)) }()
	a := &asker{clients: c, root: o.root, http: newHTTP(), patience: o.patience, lifecycle: l}
	if o.suite {
		a.suite = runSuite
	}
	results, err := l.askAll(ctx, a, all())
	return errors.Join(err, o.report(l, results))
}

// vacant returns an error where something has a name that prove would use.
func (o options) vacant(ctx context.Context, c *clients) error {
	if err := o.elsewhere(c); err != nil {
		return err
	}
	refuse := func(what string, made bool) error {
		if made {
			return fmt.Errorf("%s is left of an earlier run, or one is under way: make prove-clean STACK=%s", what, o.stack)
		}
		return fmt.Errorf("%s exists, and prove did not make it: choose another name", what)
	}
	for _, name := range []string{o.stack, failingName(o.stack)} {
		s, err := c.stack(ctx, name)
		if err != nil {
			return err
		}
		if s != nil {
			made, err := c.made(ctx, *s)
			return errors.Join(err, refuse("stack "+name, made))
		}
	}
	there, made, err := c.bucketMade(ctx, c.artifacts(o.stack))
	if err == nil && there {
		err = refuse("bucket "+c.artifacts(o.stack), made)
	}
	return err
}

func (o options) recordPath() string {
	return filepath.Join(o.root, ".build", "prove", o.stack+".json")
}

// elsewhere returns an error where the record of an earlier run, which was not
// removed, names another account or region.
func (o options) elsewhere(c *clients) error {
	text, err := os.ReadFile(o.recordPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var r record
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return fmt.Errorf("reading the record of an earlier run: %w", err)
	}
	if r.Region != c.config.Region || r.Account != c.accountID {
		return fmt.Errorf("%s is of a run in account %s, region %s, which has left something there: make prove-clean STACK=%s with credentials for that account and AWS_REGION=%s",
			o.recordPath(), r.Account, r.Region, o.stack, r.Region)
	}
	return nil
}

// agree shows the plan and asks.
func (o options) agree(l *lifecycle) error {
	role := "The region has a logging role for API Gateway: it stays as it is."
	if l.loggingRole == "Create" {
		role = "The region has no logging role for API Gateway: one is made and set for the region, and taken back at the end."
	}
	_, _ = fmt.Fprintf(o.stderr, plan, l.accountID, l.config.Region, l.name, failingName(l.name), proveTag, l.artifacts(l.name), queueName(l.name), role)
	if o.yes {
		return nil
	}
	_, _ = fmt.Fprint(o.stderr, "Start? Type the name of the stack: ")
	line, _ := bufio.NewReader(o.in).ReadString('\n') // an empty answer is a no
	if strings.TrimSpace(line) != o.stack {
		return errors.New("not started")
	}
	return nil
}

// newHTTP is a client that sends requests as they are given, and follows nothing.
func newHTTP() *http.Client {
	return &http.Client{
		Timeout:       2 * time.Minute,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true, TLSHandshakeTimeout: 10 * time.Second, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// askAll makes the deployments, each followed by the probes of its stage.
func (l *lifecycle) askAll(ctx context.Context, a *asker, probes []probe) ([]result, error) {
	var results []result
	if err := l.prepare(ctx); err != nil {
		return nil, err
	}
	if err := l.startFailing(ctx); err != nil {
		return nil, err
	}
	defer l.failing.Wait()
	l.crashed = onceForAll(func(ctx context.Context) (crash, error) { return l.deployCrash(ctx, a) })
	for at, deploy := range []func(context.Context) error{l.deployFirst, l.deploySecond, nil, nil} {
		var err error
		if deploy != nil {
			err = l.enter(ctx, a, stage(at), deploy)
		}
		for _, p := range probes {
			if p.stage != stage(at) {
				continue
			}
			r := result{p.id, notAsked, "the deployment before it failed"}
			if err == nil {
				r = askOne(ctx, p, a)
			}
			l.say("%-9s %s: %s", r.Verdict, r.ID, r.Seen)
			results = append(results, r)
		}
		if err != nil {
			return results, err
		}
	}
	return results, ctx.Err()
}

// enter deploys, and makes a test account in what was deployed.
func (l *lifecycle) enter(ctx context.Context, a *asker, at stage, deploy func(context.Context) error) error {
	if err := deploy(ctx); err != nil {
		return err
	}
	var err error
	if a.target, err = l.target(ctx, l.name); err != nil {
		return err
	}
	if at == first {
		a.began = time.Now()
	} else {
		a.secondAt = time.Now()
	}
	if a.tenant, err = a.newTenant(ctx, "make prove"); err != nil {
		return err
	}
	// A new role's permissions, a throttle and a firewall take a while to be everywhere.
	// Where this never comes about, the probes say what is wrong.
	_, err = until(ctx, min(a.patience, settle), func() (bool, error) {
		for _, r := range []request{get(a.job, a.management), post(a.management, newCredential()), remove("file_unknown", a.management)} {
			if got, err := a.send(ctx, r); err != nil || got.status >= http.StatusInternalServerError {
				return false, err
			}
		}
		return true, nil
	})
	return err
}

// settle is how long a new deployment may take until it answers everywhere.
const settle = 2 * time.Minute

// onceForAll makes the first call's result the result of all.
func onceForAll[T any](f func(context.Context) (T, error)) func(context.Context) (T, error) {
	var once sync.Once
	var result T
	var err error
	return func(ctx context.Context) (T, error) {
		once.Do(func() { result, err = f(ctx) })
		return result, err
	}
}

// report prints the table, and writes it as Markdown.
func (o options) report(l *lifecycle, results []result) error {
	if len(results) == 0 {
		return nil
	}
	title := fmt.Sprintf("Asked of AWS on %s in %s (%s first, then %s).", l.record.Started.Format(time.DateOnly), l.config.Region, l.architectures[0], l.architectures[1])
	return o.write(title, all(), results)
}

// write prints a table and writes it to .build/prove. It returns an error where a
// probe failed.
func (o options) write(title string, probes []probe, results []result) error {
	text := markdown(title, probes, results)
	path := filepath.Join(o.root, ".build", "prove", o.stack+".md")
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	_, _ = fmt.Fprintf(o.out, "%s\nThe same is in %s.\n", text, path)
	var bad []string
	for _, r := range results {
		if r.Verdict == fail || r.Verdict == notAsked && r.Seen == interrupted {
			bad = append(bad, r.ID)
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(bad, ", "))
	}
	return nil
}

// remove cleans up. Its context is its own: that of the run may be over.
func (o options) remove(c *clients, wasInterrupted bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if wasInterrupted {
		_, _ = fmt.Fprintf(o.stderr, "\nInterrupted: everything is being removed, which takes some minutes. Another Ctrl-C stops that too; then: make prove-clean STACK=%s\n", o.stack)
	}
	w := &cleaner{clients: c, name: o.stack, progress: o.stderr}
	err := w.clean(ctx)
	if err != nil {
		return fmt.Errorf("something is left: make prove-clean STACK=%s: %w", o.stack, err)
	}
	slices.Sort(w.remains)
	if w.found {
		_, _ = fmt.Fprintf(o.out, "\nRemoved from account %s, region %s: stacks %s and %s and all that they made.\n", c.accountID, c.config.Region, o.stack, failingName(o.stack))
	} else {
		_, _ = fmt.Fprintf(o.out, "\nThere is nothing of make prove STACK=%s in account %s, region %s.\n", o.stack, c.accountID, c.config.Region)
	}
	for _, what := range slices.Compact(w.remains) {
		_, _ = fmt.Fprintf(o.out, "Stays: %s.\n", what)
	}
	// The record is of what there may be.
	if err := os.Remove(o.recordPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// cleanUp is make prove-clean.
func cleanUp(ctx context.Context, o options) error {
	if err := o.check(); err != nil {
		return err
	}
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	if err := o.elsewhere(c); err != nil {
		return err
	}
	s, err := c.stack(ctx, o.stack)
	if err != nil {
		return err
	}
	if s != nil {
		if made, err := c.made(ctx, *s); err != nil || !made {
			return errors.Join(err, fmt.Errorf("stack %s has no tag %s: prove did not make it", o.stack, proveTag))
		}
	}
	return o.remove(c, false)
}
