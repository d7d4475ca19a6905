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

// target is what an API key stands for: its caller, and the workspace that it is bound to or
// else the account's default.
type target struct {
	caller    auth.Caller
	workspace ids.Workspace
}

// ownedWorkspace is a workspace and the account that it must belong to.
type ownedWorkspace struct {
	account   ids.Account
	workspace ids.Workspace
}

func (t target) owned() ownedWorkspace { return ownedWorkspace{t.caller.Account(), t.workspace} }

// stored is a workspace as stored.
type stored struct {
	row            auth.Found
	credentials    []byok.Stored
	credentialsErr error
}

// rows are the rows that belong to an API key.
type rows struct {
	target
	begun       time.Time
	credentials []byok.Stored
}

// Identify finds who calls, from the API key's row alone. A router may ask it before it
// accepts a request's body. The error is an *auth.Rejection, ErrManagementKey or
// ErrUnavailable.
func (r *Reader) Identify(ctx context.Context, hash ids.KeyHash) (auth.Caller, error) {
	caller, err := r.callers.get(ctx, hash)
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

// look reads the rows of an API key, all at once if the key stands for what it stood for last
// time. What this guess got wrong is read after the key's row.
func (r *Reader) look(ctx context.Context, hash ids.KeyHash) (rows, error) {
	begun := time.Now()
	guess, guessed := r.guesses.of(hash)
	var (
		is                                  target
		workspace                           stored
		callerErr, defaultErr, workspaceErr error
	)
	readCaller := func(ctx context.Context) { is.caller, callerErr = r.Identify(ctx, hash) }
	if guessed {
		calls.Together(ctx, readCaller,
			func(ctx context.Context) { is.workspace, defaultErr = r.workspaceOf(ctx, guess.caller) },
			func(ctx context.Context) { workspace, workspaceErr = r.stored.get(ctx, guess.owned()) })
	} else {
		readCaller(ctx)
	}
	if callerErr != nil {
		return rows{}, callerErr
	}
	if is.caller != guess.caller {
		is.workspace, defaultErr = r.workspaceOf(ctx, is.caller)
	}
	if defaultErr != nil {
		return rows{}, classify(defaultErr)
	}
	if is.owned() != guess.owned() {
		workspace, workspaceErr = r.stored.get(ctx, is.owned())
	}
	if workspaceErr != nil {
		return rows{}, classify(workspaceErr)
	}
	// If the workspace is not the caller's, no error may describe its credentials.
	if _, err := workspace.row.For(is.caller); err != nil {
		return rows{}, classify(err)
	}
	if workspace.credentialsErr != nil {
		return rows{}, classify(workspace.credentialsErr)
	}
	r.guesses.remember(hash, is)
	return rows{is, begun, workspace.credentials}, nil
}

// workspaceOf returns the workspace that the key is bound to, or reads its account's
// default.
func (r *Reader) workspaceOf(ctx context.Context, c auth.Caller) (ids.Workspace, error) {
	if bound, ok := c.Bound(); ok {
		return bound, nil
	}
	return r.defaults.get(ctx, c)
}

// readStored reads a workspace's row and its credentials side by side.
func (r *Reader) readStored(ctx context.Context, of ownedWorkspace, paid charge) (is stored, err error) {
	calls.Together(ctx, func(ctx context.Context) {
		is.row, err = r.workspaces.Find(ctx, of.workspace)
	}, func(ctx context.Context) {
		is.credentials, is.credentialsErr = byok.ReadAll(ctx, metered{r.tables, paid}, r.config.CredentialsTable, of.account, of.workspace)
	})
	return is, err
}

// metered corrects the charge of a Query.
type metered struct {
	tables
	paid charge
}

// Query implements dynamodb.QueryAPIClient.
func (m metered) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.tables.Query(ctx, in, options...)
	if err == nil && out.ConsumedCapacity != nil {
		m.paid.correct(aws.ToFloat64(out.ConsumedCapacity.CapacityUnits))
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

// guesses remembers what API keys stood for last time.
type guesses struct {
	mu  sync.Mutex
	all map[ids.KeyHash]target
}

const mostGuesses = 10_000

func (g *guesses) of(hash ids.KeyHash) (t target, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, ok = g.all[hash]
	return t, ok
}

func (g *guesses) remember(hash ids.KeyHash, t target) {
	g.mu.Lock()
	defer g.mu.Unlock()
	put(g.all, mostGuesses, hash, t)
}

func (g *guesses) forget(hash ids.KeyHash) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.all, hash)
}
