package history

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"signalbox.dev/infra/torture/caller"
	"signalbox.dev/infra/torture/world"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// How much there is for clients to meet at: little.
const (
	workspaces = 3
	keys       = 3
	jobs       = 2
	fileCount  = 5
	onceKeys   = 3
)

var providers = []string{"openai", "anthropic"}

// fixture is what clients act on: an account of the round's own.
type fixture struct {
	caller  *caller.Client
	account world.Account
	// keys are management keys; bound is a standard key of the second workspace.
	keys  []world.Key
	bound world.Key
	jobs  []ids.Job
	files []fileAt
	// deleting says of each workspace that its deletion has begun.
	deleting []atomic.Bool

	operations, uncertain atomic.Int64
	observations
}

// fileAt is a file of a workspace, by the workspace's number.
type fileAt struct {
	workspace int
	id        ids.File
}

func (r *round) newFixture(ctx context.Context) (*fixture, error) {
	stack := r.service.Stack()
	w := &fixture{caller: caller.New(r.base, Clients), deleting: make([]atomic.Bool, workspaces), observations: observations{at: map[string]string{}}}
	var err error
	if w.account, err = world.NewAccount(ctx, stack, workspaces); err != nil {
		return nil, err
	}
	r.note(Clients, 0, 0, defaultSet(string(w.account.ID), string(w.account.Workspaces[0])))
	if w.keys, err = w.account.Keys(ctx, stack, keys); err != nil {
		return nil, err
	}
	if w.bound, err = w.account.Key(ctx, stack, auth.NewKey{Kind: auth.Standard, Workspace: w.account.Workspaces[1]}); err != nil {
		return nil, err
	}
	writer := syncjobs.NewWriter(stack.DynamoDB, stack.Jobs)
	for range jobs {
		id, err := writer.Create(ctx, w.account.ID)
		if err != nil {
			return nil, err
		}
		w.jobs = append(w.jobs, id)
	}
	for i := range fileCount {
		w.files = append(w.files, fileAt{i % workspaces, ids.NewFile()})
	}
	return w, nil
}

// observations keeps what can be judged only when all is over.
type observations struct {
	mu sync.Mutex
	// at has the workspace of every credential that was asked for, by name: ""
	// where only the answer would have named it.
	at       map[string]string
	listings []listing
	strange  []string
}

// listing is a look at a workspace's credentials.
type listing struct {
	client    int
	call, end int64
	workspace string
	found     map[string]string // what is there, by name
}

func (w *observations) asked(name, workspace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.at[name]; known == "" {
		w.at[name] = workspace
	}
}

func (w *observations) looked(l listing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listings = append(w.listings, l)
}

// violation notes what no contract allows, whatever happened before.
func (w *observations) violation(format string, values ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.strange = append(w.strange, fmt.Sprintf(format, values...))
}

// recordListings gives what the listings showed of each credential that might have been
// there.
func (w *observations) recordListings(r *recorder) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.listings {
		for name, workspace := range w.at {
			if workspace == l.workspace {
				r.note(l.client, l.call, l.end, credentialSeen(name, l.found[name]))
			}
		}
	}
}
