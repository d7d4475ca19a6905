// Package history records what many clients do at once to the same few objects,
// and which responses they get, and has a checker (porcupine) decide whether the
// contract allows it: creates with and without idempotency keys, deletes,
// revocations of keys, deletions of workspaces, uploads, steps of jobs, reads.
package history

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"signalbox.dev/infra/torture/service"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

const (
	// clients act at once.
	clients = 8
	// actions of each client make a round.
	actions = 15
	// searchTimeout bounds the search for an order of one round's operations.
	searchTimeout = time.Minute

	// The objects of a round: few, so that clients meet at them.
	workspaces = 3
	keys       = 3
	jobs       = 2
	fileCount  = 5
	onceKeys   = 3

	// never is the end of an operation that may take effect at any time.
	never = math.MaxInt64
)

var providers = []string{"openai", "anthropic"}

// Config is one run.
type Config struct {
	// Root is the repository's folder, State an empty one.
	Root, State string
	Seed        uint64
	// Rounds and Duration are the least of a run.
	Rounds   int
	Duration time.Duration
	// Via returns the base URL of a proxy between clients and service. Nil means
	// none.
	Via func(base string) string
}

// Result counts what happened.
type Result struct {
	// Rounds are the checked histories; in Stormy of them processes were killed.
	Rounds, Stormy int
	service.Kills
	// Operations are requests, administration and reads; Observations what they
	// showed of the Objects.
	Operations, Observations, Objects int
	// Uncertain operations got no response, or a 500; Unexpected are those of
	// rounds without kills.
	Uncertain, Unexpected int
	// Broken are histories that the contract does not allow.
	Broken []string
}

// Run runs rounds of clients against a service of its own. In every second round
// functions and engines are killed.
func Run(ctx context.Context, c Config) (result Result, err error) {
	s, err := service.Start(ctx, service.Config{Root: c.Root, State: c.State, Parameters: service.Throttled(service.Unthrottled, map[string]string{
		"DeleteRatePerMinute": "60000", "DeleteBurst": "10000",
	})})
	if err != nil {
		return result, err
	}
	defer func() {
		if closing := s.Close(); err == nil {
			err = closing
		}
	}()
	base, end := s.BaseURL(), time.Now().Add(c.Duration)
	if c.Via != nil {
		base = c.Via(base)
	}
	for number := uint64(0); result.Rounds < max(c.Rounds, 1) || time.Now().Before(end); number++ {
		r := &round{
			service: s, client: service.NewClient(base, clients), seed: c.Seed, number: number, stormy: number%2 == 1, began: time.Now(),
			deleting: make([]atomic.Bool, workspaces), workspaceOf: map[string]string{},
		}
		if err := r.makeObjects(ctx); err != nil {
			return result, fmt.Errorf("round %d: %w", number, err)
		}
		if err := r.run(ctx, &result); err != nil {
			return result, fmt.Errorf("round %d: %w", number, err)
		}
		if err := r.judge(c.State, &result); err != nil {
			return result, err
		}
	}
	return result, nil
}

// round is one history, in an account of its own.
type round struct {
	service *service.Service
	client  *service.Client
	seed    uint64
	number  uint64
	// stormy says that functions and engines are killed. The SDK of the test, or of
	// a function, may then lose a response and send its request again.
	stormy bool
	began  time.Time

	account service.Account
	keys    []service.Key // management keys
	bound   service.Key   // a standard key of the second workspace
	jobs    []ids.Job
	files   []fileAt
	// deleting says of each workspace that its deletion has begun.
	deleting []atomic.Bool

	mu  sync.Mutex
	all []porcupine.Operation
	// workspaceOf has the workspace of every credential that was asked for, by
	// name: "" where only the response would have named it.
	workspaceOf map[string]string
	listings    []listing
	violations  []string
	operations  int
	uncertain   int
}

// fileAt is a file of the workspace with the number.
type fileAt struct {
	workspace int
	id        ids.File
}

// listing is what a list of a workspace's credentials returned, by name.
type listing struct {
	client    int
	call, end int64
	workspace string
	found     map[string]string
}

func (r *round) makeObjects(ctx context.Context) error {
	stack := r.service.Stack()
	var err error
	if r.account, err = service.NewAccount(ctx, stack, workspaces); err != nil {
		return err
	}
	r.note(clients, 0, 0, defaultSet(string(r.account.ID), string(r.account.Workspaces[0])))
	if r.keys, err = r.account.Keys(ctx, stack, keys); err != nil {
		return err
	}
	if r.bound, err = r.account.Key(ctx, stack, auth.NewKey{Kind: auth.Standard, Workspace: r.account.Workspaces[1]}); err != nil {
		return err
	}
	writer := syncjobs.NewWriter(stack.DynamoDB, stack.Jobs)
	for range jobs {
		id, err := writer.Create(ctx, r.account.ID)
		if err != nil {
			return err
		}
		r.jobs = append(r.jobs, id)
	}
	for i := range fileCount {
		r.files = append(r.files, fileAt{i % workspaces, ids.NewFile()})
	}
	return nil
}

// random is the random source of one participant, the same for the same seed.
func (r *round) random(number int) *rand.Rand {
	return rand.New(rand.NewPCG(r.seed, r.number*(clients+1)+uint64(number))) //nolint:gosec // repeatable, on purpose
}

func (r *round) run(ctx context.Context, result *Result) error {
	stormy, calm := context.WithCancel(ctx)
	defer calm()
	var storm, all sync.WaitGroup
	if r.stormy {
		storm.Go(func() {
			k := service.Killer{Service: r.service, Random: r.random(clients), Spare: true}
			kills, _ := k.Run(stormy) // only a restart fails, and Spare allows none
			result.Functions += kills.Functions
			result.Engines += kills.Engines
		})
	}
	for number := range clients {
		all.Go(func() {
			x := &client{round: r, random: r.random(number), number: number}
			for range actions {
				x.act(ctx)
			}
		})
	}
	all.Wait()
	calm()
	storm.Wait()
	last := &client{round: r, number: clients}
	for workspace := range r.account.Workspaces {
		last.list(ctx, workspace)
	}
	for _, f := range r.files {
		last.head(ctx, f)
	}
	// Each listing showed every credential that might have been there.
	for _, l := range r.listings {
		for name, workspace := range r.workspaceOf {
			if workspace == l.workspace {
				r.note(l.client, l.call, l.end, credentialSeen(name, l.found[name]))
			}
		}
	}
	return ctx.Err()
}

// judge checks the round, and draws a picture of one that is not allowed.
func (r *round) judge(dir string, result *Result) error {
	result.Rounds++
	if r.stormy {
		result.Stormy++
	} else {
		result.Unexpected += r.uncertain
	}
	result.Uncertain += r.uncertain
	result.Operations += r.operations
	result.Observations += len(r.all)
	result.Objects += len(byObject(r.all))
	result.Broken = append(result.Broken, r.violations...)
	verdict, info := porcupine.CheckOperationsVerbose(model(), r.all, searchTimeout)
	if verdict == porcupine.Ok {
		return nil
	}
	path := filepath.Join(dir, fmt.Sprintf("history-%d-%d.html", r.seed, r.number))
	picture, err := os.Create(path) //nolint:gosec // in the caller's folder
	if err != nil {
		return err
	}
	defer func() { _ = picture.Close() }() // the verdict counts
	result.Broken = append(result.Broken, fmt.Sprintf("round %d is %s: see %s", r.number, verdict, path))
	return porcupine.Visualize(model(), info, picture)
}

func (r *round) now() int64 { return int64(time.Since(r.began)) }

// note records what an operation showed, from its call to its end.
func (r *round) note(client int, call, end int64, shown ...event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range shown {
		r.all = append(r.all, porcupine.Operation{ClientId: client, Input: e, Call: call, Return: end})
	}
}

// asked records the workspace of a credential that was asked for.
func (r *round) asked(name, workspace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.workspaceOf[name] == "" {
		r.workspaceOf[name] = workspace
	}
}

func (r *round) listed(l listing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listings = append(r.listings, l)
}

// violation records what the contract never allows.
func (r *round) violation(format string, values ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.violations = append(r.violations, fmt.Sprintf(format, values...))
}
