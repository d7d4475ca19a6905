// Package crash sends a stream of requests to a service while it is being killed
// (Run) or sent more than it can serve (Overload). Afterwards nothing that was
// acknowledged may be lost, nothing that was refused may be stored, and a request
// without a certain response must be stored whole or not at all.
package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/torture/ledger"
	"signalbox.dev/infra/torture/service"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

const (
	// clients send one request after the other while processes are killed.
	clients = 8
	// crowd is the number of clients in overload: more than two cores can serve.
	crowd = 96
	// throttle is the gateway's rate in the first half of overload, for each
	// operation and second.
	throttle = 40
	// enough requests are sent before a run may end.
	enough = 100
	// filesEach is the number of files stored for each second of a run: more than
	// are asked for, so that some are left alone.
	filesEach = 60
	// The limiter's rate and burst: narrow enough for exceedLimit, wide enough for
	// most clients.
	ratePerMinute = 1200
	burst         = 20
)

// Config is one run.
type Config struct {
	// Root is the repository's folder, State an empty one.
	Root, State string
	// Versioning is the template's FilesVersioning.
	Versioning string
	Seed       uint64
	// Duration is the least time of a run, which goes on until a function and an
	// engine were killed.
	Duration time.Duration
}

// Result counts what happened.
type Result struct {
	service.Kills
	Requests, Throttled int
	ledger.Report
}

// Run kills functions, engines and the whole edition while clients use it.
func Run(ctx context.Context, c Config) (Result, error) {
	return run(ctx, c, service.Unthrottled, func(f *fixture, result *Result) error {
		during, end := context.WithCancel(ctx)
		defer end()
		var all sync.WaitGroup
		f.start(during, &all, clients)
		all.Go(func() { f.exceedLimit(during) })
		k := service.Killer{Service: f.service, Random: random(c.Seed, clients)}
		var err error
		for again := true; again; again = err == nil && ctx.Err() == nil &&
			(result.Functions == 0 || result.Engines == 0 || f.requests.Load() < enough) {
			spell, endSpell := context.WithTimeout(ctx, c.Duration)
			var kills service.Kills
			kills, err = k.Run(spell)
			endSpell()
			result.Functions += kills.Functions
			result.Engines += kills.Engines
			result.Editions += kills.Editions
		}
		end()
		all.Wait()
		return err
	})
}

// Overload sends far more than the gateway's throttle passes, and then, without a
// throttle, more than the machine can serve.
func Overload(ctx context.Context, c Config) (Result, error) {
	return run(ctx, c, throttle, func(f *fixture, _ *Result) error {
		f.overloaded = true
		defer func() { f.overloaded = false }()
		for range 2 {
			during, end := context.WithTimeout(ctx, c.Duration/2)
			var all sync.WaitGroup
			f.start(during, &all, crowd)
			all.Wait()
			end()
			f.service.SetParameters(c.parameters(service.Unthrottled))
			if err := f.service.Restart(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c Config) parameters(throttle int) map[string]string {
	return service.Throttled(throttle, map[string]string{
		"DeleteRatePerMinute": fmt.Sprint(ratePerMinute), "DeleteBurst": fmt.Sprint(burst), "FilesVersioning": c.Versioning,
	})
}

// run starts a service, has storm send requests, repeats those without a certain
// response, and compares storage with the ledger.
func run(ctx context.Context, c Config, throttle int, storm func(*fixture, *Result) error) (result Result, err error) {
	s, err := service.Start(ctx, service.Config{Root: c.Root, State: c.State, Parameters: c.parameters(throttle)})
	if err != nil {
		return result, err
	}
	err = audited(ctx, s, c, storm, &result)
	if closing := s.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return result, err
	}
	leaks, err := testkit.Leaks(c.State)
	result.Broken = append(result.Broken, leaks...)
	return result, err
}

func audited(ctx context.Context, s *service.Service, c Config, storm func(*fixture, *Result) error, result *Result) error {
	f, err := newFixture(ctx, s, c)
	if err != nil {
		return err
	}
	if err := storm(f, result); err != nil {
		return err
	}
	// What is on disk counts, not what a process has in memory.
	if err := s.Restart(ctx); err != nil {
		return err
	}
	result.Editions++
	if err := f.finish(ctx); err != nil {
		return err
	}
	result.Requests, result.Throttled = int(f.requests.Load()), int(f.throttled.Load())
	result.Report, err = f.ledger.Audit(ctx, s.Stack())
	return err
}

// random is the random source of one client, the same for the same seed.
func random(seed uint64, number int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(number))) //nolint:gosec // repeatable, on purpose
}

// fixture is what clients use, and the ledger of their responses.
type fixture struct {
	service *service.Service
	client  *service.Client
	ledger  *ledger.Ledger

	account service.Account
	// keys are the clients' own; spare and limited belong to no client.
	keys           []service.Key
	spare, limited service.Key
	standard       service.Key
	// stranger is a key of another account, elsewhere that account's workspace.
	stranger  service.Key
	elsewhere ids.Workspace
	job       ids.Job
	files     []*ledger.File

	seed uint64
	// overloaded says that requests may be throttled.
	overloaded bool

	nextFile, started   atomic.Int64
	requests, throttled atomic.Int64
}

// newFixture makes everything that clients need, before anything is killed.
func newFixture(ctx context.Context, s *service.Service, c Config) (*fixture, error) {
	f := &fixture{service: s, seed: c.Seed, client: service.NewClient(s.BaseURL(), crowd)}
	stack := s.Stack()
	var err error
	if f.account, err = service.NewAccount(ctx, stack, 2); err != nil {
		return nil, err
	}
	if f.keys, err = f.account.Keys(ctx, stack, clients+2); err != nil {
		return nil, err
	}
	f.spare, f.limited = f.keys[clients], f.keys[clients+1]
	if f.standard, err = f.account.Key(ctx, stack, auth.NewKey{Kind: auth.Standard}); err != nil {
		return nil, err
	}
	other, err := service.NewAccount(ctx, stack, 1)
	if err != nil {
		return nil, err
	}
	f.elsewhere = other.Workspaces[0]
	if f.stranger, err = other.Key(ctx, stack, auth.NewKey{Kind: auth.Management}); err != nil {
		return nil, err
	}
	if f.job, err = syncjobs.NewWriter(stack.DynamoDB, stack.Jobs).Create(ctx, f.account.ID); err != nil {
		return nil, err
	}
	f.ledger = ledger.New(f.account.ID)
	f.files, err = f.ledger.StoreFiles(ctx, stack, f.account.Workspaces, int(c.Duration.Seconds()*filesEach))
	for i := 0; i < len(f.files) && err == nil; i += 3 { // a second version, in a versioned bucket
		err = f.files[i].Overwrite(ctx, stack)
	}
	return f, err
}

// start starts clients that send requests until the context is done.
func (f *fixture) start(ctx context.Context, all *sync.WaitGroup, count int) {
	for i := range count {
		all.Go(func() {
			c := client{fixture: f, random: random(f.seed, i), apiKey: f.keys[i%clients].Token, number: int(f.started.Add(1))}
			c.run(ctx)
		})
	}
}

// finish repeats what may be repeated: it must end as if nothing had been killed.
func (f *fixture) finish(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for _, o := range f.ledger.Repeatable() {
		group.Go(func() error {
			if status := f.create(ctx, o, o.Body()); !o.Done() {
				f.ledger.Breach("%s is valid and is not accepted: %d", o.Name, status)
			}
			return ctx.Err()
		})
	}
	for _, file := range f.ledger.Unfinished() {
		group.Go(func() error {
			a := f.remove(ctx, f.spare.Token, file)
			if file.Answered(a); a.Uncertain() {
				f.ledger.Breach("%s cannot be deleted: %d", file.ID, a.Status)
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}
