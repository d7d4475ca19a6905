package routing

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// A request needs three reads: of the API key, of its account's default workspace if the key
// is bound to none, and of the workspace with its credentials. Each read needs the result of
// the one before. A key seldom changes what it stands for, so the reader remembers that as a
// guess and makes the three reads at once, in one round trip. A wrong guess costs another
// read, and never gives a wrong result.

// identity is what an API key stands for: its caller, and the workspace that it is bound to
// or else the account's default.
type identity struct {
	caller    auth.Caller
	workspace ids.Workspace
}

func (i identity) owned() ownedWorkspace { return ownedWorkspace{i.caller.Account(), i.workspace} }

// ownedWorkspace is a workspace and the account that it must belong to.
type ownedWorkspace struct {
	account   ids.Account
	workspace ids.Workspace
}

// rows is the result of look: who calls, and the credentials of the workspace.
type rows struct {
	identity
	credentials []byok.Stored
}

// Identify finds who calls, from the API key's row alone. A router may ask it before it
// accepts a request's body. The error is an *auth.Rejection, ErrManagementKey or
// ErrUnavailable.
func (r *Reader) Identify(ctx context.Context, hash ids.KeyHash) (auth.Caller, error) {
	caller, err := r.callers.get(ctx, hash)
	if err == nil && caller.MayManage() {
		err = ErrManagementKey
	}
	if err != nil {
		return auth.Caller{}, r.refused(hash, err)
	}
	return caller, nil
}

// refused classifies the error, and forgets the guess of a key that is refused: from now on
// its requests stop at the first read that refuses them.
func (r *Reader) refused(hash ids.KeyHash, err error) error {
	err = classify(err)
	if !errors.Is(err, ErrUnavailable) {
		r.guesses.forget(hash)
	}
	return err
}

// look reads the rows of an API key by a guess. What the guess got wrong is read again.
func (r *Reader) look(ctx context.Context, hash ids.KeyHash) (rows, error) {
	var caller calls.Result[auth.Caller]
	var workspace calls.Result[ids.Workspace]
	var found calls.Result[contents]
	guess, isKnown := r.guesses.get(hash)
	if isKnown {
		calls.Together(ctx,
			caller.Of(func(ctx context.Context) (auth.Caller, error) { return r.Identify(ctx, hash) }),
			workspace.Of(func(ctx context.Context) (ids.Workspace, error) { return r.workspaceOf(ctx, guess.caller) }),
			found.Of(func(ctx context.Context) (contents, error) { return r.contents.get(ctx, guess.owned()) }))
	} else {
		caller = calls.ResultOf(r.Identify(ctx, hash))
	}

	if caller.Err != nil {
		return rows{}, caller.Err
	}
	// The zero guess is nobody's: for an unknown key everything is read below, in turn.
	if caller.Value != guess.caller {
		workspace = calls.ResultOf(r.workspaceOf(ctx, caller.Value))
	}
	if workspace.Err != nil {
		return rows{}, workspace.Err
	}
	actual := identity{caller.Value, workspace.Value}
	if actual.owned() != guess.owned() {
		found = calls.ResultOf(r.contents.get(ctx, actual.owned()))
	}
	if found.Err != nil {
		return rows{}, found.Err
	}
	credentials, err := found.Value.For(actual.caller)
	if err != nil {
		return rows{}, err
	}
	r.guesses.set(hash, actual)
	return rows{actual, credentials}, nil
}

// workspaceOf returns the key's workspace as Workspaces.Default does. A bound key needs no
// read, so it does not wait for a paced one.
func (r *Reader) workspaceOf(ctx context.Context, c auth.Caller) (ids.Workspace, error) {
	if bound, ok := c.Bound(); ok {
		return bound, nil
	}
	return r.defaults.get(ctx, c)
}

// contents is a workspace's row and its credentials, read before it was known whether the
// workspace is the caller's. Only For reveals them.
type contents struct {
	workspace      auth.Found
	credentials    []byok.Stored
	credentialsErr error
}

// For yields the credentials if the workspace is the caller's. If it is not, no error
// describes its credentials.
func (c contents) For(caller auth.Caller) ([]byok.Stored, error) {
	if _, err := c.workspace.For(caller); err != nil {
		return nil, err
	}
	return c.credentials, c.credentialsErr
}

// readContents reads a workspace's row and its credentials side by side.
func (r *Reader) readContents(ctx context.Context, w ownedWorkspace, paid charge) (found contents, err error) {
	calls.Together(ctx,
		func(ctx context.Context) { found.workspace, err = r.workspaces.Find(ctx, w.workspace) },
		func(ctx context.Context) {
			db := metered{r.tables, paid}
			found.credentials, found.credentialsErr = byok.ReadAll(ctx, db, r.credentialsTable, w.account, w.workspace)
		})
	return found, err
}

// classify returns the error as an error that Read names.
func classify(err error) error {
	_, rejected := errors.AsType[*auth.Rejection](err)
	switch {
	case rejected, errors.Is(err, ErrManagementKey), errors.Is(err, ErrNoWorkspace), errors.Is(err, ErrTooMany),
		errors.Is(err, calls.ErrDamaged), errors.Is(err, ErrUnavailable):
		return err
	default:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
}

// guesses remembers what API keys stood for last time.
type guesses struct {
	mu  sync.Mutex
	all bounded[ids.KeyHash, identity]
}

func (g *guesses) get(hash ids.KeyHash) (i identity, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i, ok = g.all[hash]
	return i, ok
}

func (g *guesses) set(hash ids.KeyHash, i identity) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all.set(hash, i)
}

func (g *guesses) forget(hash ids.KeyHash) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.all, hash)
}
