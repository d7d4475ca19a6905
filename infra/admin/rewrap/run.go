// Package rewrap moves all credentials to another sealing key, without opening one.
package rewrap

import (
	"context"
	"errors"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/seal"
)

const (
	// segments of the table are walked side by side: a move is two round trips, and one
	// mover would not reach the rates that KMS and the table allow.
	segments = 8
	// Patience is how many moves in a row may fail for reasons that lie outside
	// the credentials before it is not worth trying the rest.
	Patience = 10
)

const (
	errGaveUp      = exit.Findings("too many credentials in a row could not be rewrapped: gave up")
	errNotAllMoved = exit.Findings("not all credentials could be rewrapped")
)

// Run moves all credentials to another key.
type Run struct {
	wrappedKeys *byok.WrappedKeys
	rewrapper   *seal.Rewrapper
	pace        *rate.Limiter
	to          arguments.KeyARN

	mu     sync.Mutex
	result Result
	inARow int // moves that failed since the last that did not
}

// NewRun returns a run that moves at most perSecond credentials a second.
func NewRun(wrappedKeys *byok.WrappedKeys, client *kms.Client, to arguments.KeyARN, from []arguments.KeyARN, perSecond int) *Run {
	sources := make([]string, len(from))
	for i, key := range from {
		sources[i] = string(key)
	}
	return &Run{
		to:          to,
		wrappedKeys: wrappedKeys,
		rewrapper:   seal.NewRewrapper(client, string(to), sources...),
		// A tenth of a second's worth may pass at once: timers are too coarse for
		// thousands a second one by one.
		pace:   rate.NewLimiter(rate.Limit(perSecond), max(perSecond/10, 1)),
		result: Result{To: to, From: from, Failed: []Failure{}},
	}
}

// Survey counts the credentials under each key.
func (r *Run) Survey(ctx context.Context) (map[arguments.KeyARN]int, error) {
	found := map[arguments.KeyARN]int{}
	err := r.walk(ctx, func(_ context.Context, w byok.WrappedKey) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		found[arguments.KeyARN(w.KeyARN)]++
		return nil
	})
	return found, err
}

// MoveAll moves all credentials to the key; found has their numbers by key. It calls
// step for each, and end at the end: progress returns both.
func (r *Run) MoveAll(ctx context.Context, found map[arguments.KeyARN]int, progress func(int) (step, end func())) (Result, error) {
	total := 0
	for key, credentials := range found {
		if key != r.to {
			total += credentials
		}
	}
	step, end := progress(total)
	defer end()
	err := r.walk(ctx, func(ctx context.Context, w byok.WrappedKey) error {
		if arguments.KeyARN(w.KeyARN) != r.to {
			defer step()
			if err := r.pace.Wait(ctx); err != nil {
				return err
			}
		}
		outcome, err := r.wrappedKeys.Rewrap(ctx, w, r.rewrapper)
		return r.note(ctx, w, outcome, err)
	})
	if err == nil && len(r.result.Failed) > 0 {
		err = errNotAllMoved
	}
	return r.result, err
}

// walk visits every credential, segments side by side, until a visit fails.
func (r *Run) walk(ctx context.Context, visit func(context.Context, byok.WrappedKey) error) error {
	all, ctx := errgroup.WithContext(ctx)
	for segment := range int32(segments) {
		all.Go(func() error {
			for page, err := range r.wrappedKeys.Pages(ctx, segment, segments) {
				if err != nil {
					return err
				}
				if err := r.pace.Wait(ctx); err != nil {
					return err
				}
				for _, w := range page {
					if err := visit(ctx, w); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// note counts the outcome for a credential, and decides whether to go on.
func (r *Run) note(ctx context.Context, w byok.WrappedKey, outcome byok.RewrapOutcome, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err() // it was not the credential's turn any more
	case err != nil:
		return r.noteFailure(w, err)
	case outcome == byok.Moved:
		r.result.Rewrapped++
		r.inARow = 0
	case outcome == byok.AlreadyThere:
		r.result.AlreadyThere++
	default:
		r.result.Changed++
	}
	return nil
}

func (r *Run) noteFailure(w byok.WrappedKey, err error) error {
	r.result.Failed = append(r.result.Failed, Failure{Workspace: w.Workspace, ID: w.ID, Reason: exit.Sentence(err, exit.Uncertain)})
	for _, own := range []error{byok.ErrUnreadable, seal.ErrFormat, seal.ErrKey, seal.ErrDataKey} {
		if errors.Is(err, own) {
			return nil
		}
	}
	if r.inARow++; r.inARow >= Patience {
		return errGaveUp
	}
	return nil
}
