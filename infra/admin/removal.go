package main

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/seal"
)

const (
	// segments of the table are walked side by side: a move is two round trips,
	// so that one mover would not reach the rates that KMS and the table allow.
	segments = 8
	// patience is how many moves in a row may fail for reasons that lie outside
	// the credentials before it is not worth trying the rest.
	patience = 10
)

// removal moves all credentials to another key.
type removal struct {
	session   *session
	rewrapper *seal.Rewrapper
	pace      *rate.Limiter

	mu     sync.Mutex
	view   rewrapView
	inARow int // moves that failed since the last that did not
}

func newRemoval(s *session, to keyARN, from []keyARN, perSecond int) *removal {
	sources := make([]string, len(from))
	for i, key := range from {
		sources[i] = string(key)
	}
	return &removal{
		session:   s,
		rewrapper: seal.NewRewrapper(s.kms, string(to), sources...),
		// A tenth of a second's worth may pass at once: timers are too coarse for
		// thousands a second one by one.
		pace: rate.NewLimiter(rate.Limit(perSecond), max(perSecond/10, 1)),
		view: rewrapView{To: to, From: from, Failed: []rewrapFailure{}},
	}
}

// survey counts the credentials under each key.
func (r *removal) survey(ctx context.Context) (map[keyARN]int, error) {
	found := map[keyARN]int{}
	err := r.walk(ctx, func(_ context.Context, w byok.Wrapping) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		found[keyARN(w.KeyARN)]++
		return nil
	})
	return found, err
}

// moveAll moves what is not there yet; found is how far it has to go.
func (r *removal) moveAll(ctx context.Context, found map[keyARN]int) error {
	total := 0
	for key, credentials := range found {
		if key != r.view.To {
			total += credentials
		}
	}
	step, end := r.session.progress(total)
	defer end()
	err := r.walk(ctx, func(ctx context.Context, w byok.Wrapping) error {
		if keyARN(w.KeyARN) != r.view.To {
			defer step()
			if err := r.pace.Wait(ctx); err != nil {
				return err
			}
		}
		outcome, err := r.session.wrappings.Rewrap(ctx, w, r.rewrapper)
		return r.note(ctx, w, outcome, err)
	})
	if err == nil && len(r.view.Failed) > 0 {
		err = errNotAllMoved
	}
	return err
}

// walk visits every credential, segments side by side, until a visit fails.
func (r *removal) walk(ctx context.Context, visit func(context.Context, byok.Wrapping) error) error {
	all, ctx := errgroup.WithContext(ctx)
	for segment := range int32(segments) {
		all.Go(func() error {
			for page, err := range r.session.wrappings.Pages(ctx, segment, segments) {
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

// note counts what came of one credential, and decides whether to go on.
func (r *removal) note(ctx context.Context, w byok.Wrapping, outcome byok.Rewrapped, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err() // it was not the credential's turn any more
	case err != nil:
		return r.noteFailure(w, err)
	case outcome == byok.Moved:
		r.view.Rewrapped++
		r.inARow = 0
	case outcome == byok.AlreadyThere:
		r.view.AlreadyThere++
	default:
		r.view.Overtaken++
	}
	return nil
}

func (r *removal) noteFailure(w byok.Wrapping, err error) error {
	r.view.Failed = append(r.view.Failed, rewrapFailure{Workspace: w.Workspace, ID: w.ID, Reason: sentence(err)})
	for _, own := range []error{byok.ErrUnreadable, seal.ErrFormat, seal.ErrKey, seal.ErrDataKey} {
		if errors.Is(err, own) {
			return nil
		}
	}
	if r.inARow++; r.inARow >= patience {
		return errGaveUp
	}
	return nil
}
