package routing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// Caller is an API key that Identify has verified, for one request.
type Caller struct {
	meaning
	hash  auth.KeyHash
	ahead atomic.Pointer[rows] // read by Identify, for the first Read
}

// Account is the account that the key belongs to.
func (c *Caller) Account() ids.Account { return c.caller.Account() }

// Workspace is the workspace that the key is bound to, or else the default of its
// account.
func (c *Caller) Workspace() ids.Workspace { return c.workspace }

// KeyHash is the API key's hash.
func (c *Caller) KeyHash() auth.KeyHash { return c.hash }

// meaning is the owner of an API key, and the workspace that it stands for.
type meaning struct {
	caller    auth.Caller
	workspace ids.Workspace
}

func (m meaning) tenant() tenant { return tenant{m.caller.Account(), m.workspace} }

// rows are the rows that belong to an API key.
type rows struct {
	meaning
	begun  time.Time
	stored []byok.Stored
}

// tenant is a workspace and the account that it must belong to.
type tenant struct {
	account   ids.Account
	workspace ids.Workspace
}

// held is a workspace as stored.
type held struct {
	row       auth.Found
	stored    []byok.Stored
	storedErr error
}

// Identify finds who calls: the API key's account, and the workspace that the key is
// bound to or else the account's default. It reads the key, the workspace and its
// credentials side by side, strongly consistent, and opens nothing.
//
// It returns an *auth.Rejection, ErrManagementKey, ErrNoWorkspace, ErrUnreadable,
// ErrTooMany or ErrUnavailable.
func (r *Reader) Identify(ctx context.Context, b auth.Bearer) (*Caller, error) {
	read, err := r.look(ctx, b.Hash())
	if err != nil {
		return nil, err
	}
	c := &Caller{meaning: read.meaning, hash: b.Hash()}
	c.ahead.Store(read)
	return c, nil
}

// look reads the rows of an API key. Beside the key it reads the workspace that the key
// meant last time. That guess is checked against the rows just read. If it is wrong, the
// right workspace is read after them.
func (r *Reader) look(ctx context.Context, hash auth.KeyHash) (*rows, error) {
	is := rows{begun: time.Now()}
	var (
		callerErr, workspaceErr, heldErr error
		workspace                        held
	)
	readWorkspace := func(ctx context.Context, caller auth.Caller) {
		is.workspace, workspaceErr = r.workspaceOf(ctx, caller)
	}
	readHeld := func(ctx context.Context, of tenant) { workspace, heldErr = r.tenants.get(ctx, of) }

	guess, guessed := r.guesses.of(hash)
	look := []func(context.Context){func(ctx context.Context) { is.caller, callerErr = r.keys.get(ctx, hash) }}
	if guessed {
		look = append(look,
			func(ctx context.Context) { readWorkspace(ctx, guess.caller) },
			func(ctx context.Context) { readHeld(ctx, guess.tenant()) })
	}
	calls.Together(ctx, look...)
	if callerErr != nil {
		return nil, classify(callerErr)
	}
	if is.caller.MayManage() {
		return nil, ErrManagementKey
	}
	if !guessed || is.caller != guess.caller {
		readWorkspace(ctx, is.caller)
	}
	if workspaceErr != nil {
		return nil, classify(workspaceErr)
	}
	if !guessed || is.tenant() != guess.tenant() {
		readHeld(ctx, is.tenant())
	}
	if heldErr != nil {
		return nil, classify(heldErr)
	}
	// If the workspace is not the caller's, no error may describe its credentials.
	if _, err := workspace.row.For(is.caller); err != nil {
		return nil, classify(err)
	}
	if workspace.storedErr != nil {
		return nil, classify(workspace.storedErr)
	}
	r.guesses.remember(hash, is.meaning)
	is.stored = workspace.stored
	return &is, nil
}

// workspaceOf returns the workspace that the key is bound to, or reads its account's
// default.
func (r *Reader) workspaceOf(ctx context.Context, c auth.Caller) (ids.Workspace, error) {
	if bound, ok := c.Bound(); ok {
		return bound, nil
	}
	return r.defaults.get(ctx, c)
}

// readTenant reads a workspace's row and its credentials side by side.
func (r *Reader) readTenant(ctx context.Context, of tenant) (is held, err error) {
	calls.Together(ctx, func(ctx context.Context) {
		is.row, err = r.workspaces.Find(ctx, of.workspace)
	}, func(ctx context.Context) {
		is.stored, is.storedErr = byok.ReadAll(ctx, r.tables, r.config.CredentialsTable, of.account, of.workspace)
	})
	return is, err
}

// classify returns the error as an error that Identify names.
func classify(err error) error {
	_, rejected := errors.AsType[*auth.Rejection](err)
	switch {
	case rejected, errors.Is(err, ErrNoWorkspace), errors.Is(err, ErrUnreadable), errors.Is(err, ErrTooMany), errors.Is(err, ErrUnavailable):
		return err
	case errors.Is(err, auth.ErrUnreadable):
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	default:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
}

// guesses remembers the last meaning of API keys.
type guesses struct {
	mu  sync.Mutex
	all map[auth.KeyHash]meaning
}

// mostGuesses bounds the map. When it holds so many guesses, it is emptied.
const mostGuesses = 10_000

func (g *guesses) of(hash auth.KeyHash) (m meaning, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m, ok = g.all[hash]
	return m, ok
}

func (g *guesses) remember(hash auth.KeyHash, m meaning) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil || len(g.all) >= mostGuesses {
		g.all = make(map[auth.KeyHash]meaning)
	}
	g.all[hash] = m
}
