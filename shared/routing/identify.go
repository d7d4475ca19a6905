package routing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

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

// Identify finds who calls, from the API key's row alone. A router may ask it before it
// accepts a request's body. The error is an *auth.Rejection, ErrManagementKey or
// ErrUnavailable.
func (r *Reader) Identify(ctx context.Context, hash auth.KeyHash) (auth.Caller, error) {
	caller, err := r.keys.get(ctx, hash)
	switch {
	case err != nil:
		err = classify(err)
	case caller.MayManage():
		err = ErrManagementKey
	default:
		return caller, nil
	}
	if !errors.Is(err, ErrUnavailable) {
		r.guesses.forget(hash) // from now on the refused key costs one read
	}
	return auth.Caller{}, err
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
	look := []func(context.Context){func(ctx context.Context) { is.caller, callerErr = r.Identify(ctx, hash) }}
	if guessed {
		look = append(look,
			func(ctx context.Context) { readWorkspace(ctx, guess.caller) },
			func(ctx context.Context) { readHeld(ctx, guess.tenant()) })
	}
	calls.Together(ctx, look...)
	if callerErr != nil {
		return nil, callerErr
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
func (r *Reader) readTenant(ctx context.Context, of tenant, settle settle) (is held, err error) {
	calls.Together(ctx, func(ctx context.Context) {
		is.row, err = r.workspaces.Find(ctx, of.workspace)
	}, func(ctx context.Context) {
		is.stored, is.storedErr = byok.ReadAll(ctx, metered{r.tables, settle}, r.config.CredentialsTable, of.account, of.workspace)
	})
	return is, err
}

// metered reports the read units that a Query consumed.
type metered struct {
	tables
	settle settle
}

// Query implements dynamodb.QueryAPIClient.
func (m metered) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.tables.Query(ctx, in, options...)
	if err == nil && out.ConsumedCapacity != nil {
		m.settle(aws.ToFloat64(out.ConsumedCapacity.CapacityUnits))
	}
	return out, err
}

// classify returns the error as an error that Read names.
func classify(err error) error {
	_, rejected := errors.AsType[*auth.Rejection](err)
	switch {
	case rejected, errors.Is(err, ErrManagementKey), errors.Is(err, ErrNoWorkspace), errors.Is(err, ErrUnreadable),
		errors.Is(err, ErrTooMany), errors.Is(err, ErrUnavailable):
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

func (g *guesses) forget(hash auth.KeyHash) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.all, hash)
}
