package acts

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

const (
	// segments is the number of parts of the table that are walked concurrently: a move is
	// two round trips, and one worker would not reach the rates that KMS and the table allow.
	segments = 8
	// FailuresInARow is the number of changes in a row that may fail for reasons outside
	// their objects. After that the command gives up.
	FailuresInARow = 10
	// ProgressEvery is the time between two lines about the progress.
	ProgressEvery = 10 * time.Second
)

const (
	errGaveUp      = Findings("too many credentials in a row could not be rewrapped: gave up. The list has the reasons; repeat the command once they are gone")
	errNotAllMoved = Findings("not all credentials could be rewrapped: the list has the reasons. Repeat the command once they are gone")
)

// RewrapResult is the result of a rewrap.
type RewrapResult struct {
	To           string          `json:"to"`
	From         []string        `json:"from"`
	Rewrapped    int             `json:"rewrapped" title:"rewrapped"`
	AlreadyThere int             `json:"already_there" title:"already there"`
	Changed      int             `json:"gone_meanwhile" title:"gone meanwhile"`
	Failed       []RewrapFailure `json:"failed"`
	Failures     int             `json:"-" title:"failed"` // the number of Failed
	Seconds      float64         `json:"seconds" title:"seconds"`
}

// RewrapFailure is a credential that was not moved, and the reason.
type RewrapFailure struct {
	Workspace ids.Workspace  `json:"workspace_id" list:"workspace,short"`
	ID        ids.Credential `json:"id" list:"credential,short"`
	Reason    string         `json:"reason" list:"reason,30"`
}

// Rewrap moves the wrapped data keys of all credentials to another KMS key. If it was interrupted
// or killed, it may be run again. Two may run at once.
type Rewrap struct {
	stack     *Stack
	wrapped   *byok.WrappedKeys
	rewrapper *seal.Rewrapper
	pace      *rate.Limiter

	mu          sync.Mutex // of all below
	result      RewrapResult
	inARow      int // moves that failed since the last successful one
	done, total int // of those that were not under the key already
	reported    time.Time
}

// NewRewrap moves credentials to a key, only from these keys, at most so many a second.
func (s *Stack) NewRewrap(wrapped *byok.WrappedKeys, rewrapper *seal.Rewrapper, from []string, perSecond int) *Rewrap {
	return &Rewrap{
		stack: s, wrapped: wrapped, rewrapper: rewrapper, result: RewrapResult{To: rewrapper.To(), From: from, Failed: []RewrapFailure{}},
		// The moves of a tenth of a second may start at once, because timers are too
		// coarse for thousands a second.
		pace:     rate.NewLimiter(rate.Limit(perSecond), max(perSecond/10, 1)),
		reported: s.Now(),
	}
}

// CountByKey counts the credentials under each key.
func (r *Rewrap) CountByKey(ctx context.Context) (map[string]int, error) {
	found := map[string]int{}
	err := r.walk(ctx, func(_ context.Context, w byok.WrappedKey) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		found[w.KeyARN]++
		return nil
	})
	return found, err
}

// Run moves all credentials; found has their numbers by key. It returns its counts, also with an
// error.
//
// Of each credential the data key is wrapped again first, which changes nothing stored. Then one
// conditional write replaces it: a credential is under the old key or the new one, whole either
// way.
func (r *Rewrap) Run(ctx context.Context, found map[string]int) (RewrapResult, error) {
	attrs := []any{
		"to", r.result.To, "from", r.result.From, "rewrapped", &r.result.Rewrapped, "already_there", &r.result.AlreadyThere,
		"gone_meanwhile", &r.result.Changed, "failed", &r.result.Failures,
	}
	began := r.stack.Now()
	err := r.stack.DoAll(ctx, "credential.rewrap", attrs, func(ctx context.Context) error { return r.moveAll(ctx, found) })
	r.result.Seconds = r.stack.Now().Sub(began).Round(time.Second / 10).Seconds()
	return r.result, err
}

// moveAll moves all credentials to the key; found has their numbers by key.
func (r *Rewrap) moveAll(ctx context.Context, found map[string]int) error {
	for key, credentials := range found {
		if key != r.rewrapper.To() {
			r.total += credentials
		}
	}
	err := r.walk(ctx, r.move)
	if err == nil && len(r.result.Failed) > 0 {
		err = errNotAllMoved
	}
	return OrRepeat(ctx, err, Count(r.result.Rewrapped, "credential")+" rewrapped")
}

func (r *Rewrap) move(ctx context.Context, w byok.WrappedKey) error {
	if w.KeyARN != r.rewrapper.To() {
		defer r.reportProgress()
		if err := r.pace.Wait(ctx); err != nil {
			return err
		}
	}
	outcome, err := r.wrapped.Rewrap(ctx, w, r.rewrapper)
	return r.count(ctx, w, outcome, err)
}

// reportProgress counts a credential, and now and then reports how many there were.
func (r *Rewrap) reportProgress() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	if now := r.stack.Now(); now.Sub(r.reported) >= ProgressEvery {
		r.reported = now
		r.stack.Note("%d of %d", r.done, r.total)
	}
}

// walk visits every credential, with concurrent segments. A segment ends at its first failure, and
// stops no other in the middle of a write.
func (r *Rewrap) walk(ctx context.Context, visit func(context.Context, byok.WrappedKey) error) error {
	var all errgroup.Group
	for segment := range int32(segments) {
		all.Go(func() error {
			for page, err := range r.wrapped.Pages(ctx, segment, segments) {
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

// count counts the outcome for a credential, and decides whether to go on.
func (r *Rewrap) count(ctx context.Context, w byok.WrappedKey, outcome byok.RewrapOutcome, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err() // the run had already ended
	case err != nil:
		r.result.Failures++
		r.result.Failed = append(r.result.Failed, RewrapFailure{w.Workspace, w.ID, ErrorText(err, false)})
		for _, own := range []error{calls.ErrDamaged, seal.ErrFormat, seal.ErrKey, seal.ErrDataKey} {
			if errors.Is(err, own) {
				return nil
			}
		}
		if r.inARow++; r.inARow >= FailuresInARow {
			return errGaveUp
		}
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
