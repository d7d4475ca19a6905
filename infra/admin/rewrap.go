package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/infra/admin/target"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// credentialRewrap moves the credentials of all accounts, so it has no flag for one.
type credentialRewrap struct {
	To     arguments.KeyARN   `required:"" placeholder:"ARN" help:"The key to move to. New credentials must be sealed under it already."`
	From   []arguments.KeyARN `placeholder:"ARN" help:"A key to move from; can be repeated. If omitted, the stack's own key."`
	Rate   int                `default:"100" placeholder:"N" help:"Rewrap at most N credentials a second (${default}), and read at most as many pages of 50."`
	DryRun bool               `help:"Only count the credentials that would be rewrapped."`
}

const (
	// segments is the number of parts of the table that are walked concurrently: a move is
	// two round trips, and one worker would not reach the rates that KMS and the table allow.
	segments = 8
	// failuresInARow is the number of changes in a row that may fail for reasons outside
	// their objects. After that the command gives up.
	failuresInARow = 10
	// progressEvery is the time between two lines about the progress.
	progressEvery = 10 * time.Second
)

const (
	errGaveUp      = exit.Findings("too many credentials in a row could not be rewrapped: gave up. The list has the reasons; repeat the command once they are gone")
	errNotAllMoved = exit.Findings("not all credentials could be rewrapped: the list has the reasons. Repeat the command once they are gone")
)

type rewrapResult struct {
	To           arguments.KeyARN   `json:"to"`
	From         []arguments.KeyARN `json:"from"`
	Rewrapped    int                `json:"rewrapped" title:"rewrapped"`
	AlreadyThere int                `json:"already_there" title:"already there"`
	Changed      int                `json:"gone_meanwhile" title:"gone meanwhile"`
	Failed       []rewrapFailure    `json:"failed"`
	Failures     int                `json:"-" title:"failed"`
	Took         time.Duration      `json:"-" title:"took"`
	Seconds      float64            `json:"seconds"`
}

type rewrapFailure struct {
	Workspace ids.Workspace  `json:"workspace_id" list:"workspace,short"`
	ID        ids.Credential `json:"id" list:"credential,short"`
	Reason    string         `json:"reason" list:"reason,30"`
}

// surveyView is the number of credentials under one key.
type surveyView struct {
	Key         arguments.KeyARN `json:"key" list:"key,short"`
	Credentials int              `json:"credentials" list:"credentials"`
	Status      string           `json:"status" list:"status,16"`
}

// Run moves all credentials, or counts them. If it was interrupted or killed, it may be
// run again. Two may run at once.
func (c credentialRewrap) Run(ctx context.Context, s *session) error {
	from, err := c.sources(s.target.Outputs)
	if err != nil {
		return err
	}
	run := c.newRun(s, from)
	found, err := run.countByKey(ctx)
	if err != nil {
		return err
	}
	if c.DryRun {
		return run.showCounts(found)
	}
	attrs := []any{"to", c.To, "from", from}
	if err := s.begin(ctx, "credential.rewrap", attrs...); err != nil {
		return err
	}
	began := s.now()
	err = run.moveAll(ctx, found)
	result := run.result
	result.Seconds = s.now().Sub(began).Seconds()
	s.audit(ctx, "credential.rewrap", err, append(attrs, "rewrapped", result.Rewrapped,
		"already_there", result.AlreadyThere, "gone_meanwhile", result.Changed, "failed", len(result.Failed))...)
	if shown := result.show(s.out); err == nil {
		err = shown
	}
	return err
}

// sources are the keys from which credentials are moved. A record's own word about its key
// is not enough: see seal.NewRewrapper.
func (c credentialRewrap) sources(o target.Outputs) ([]arguments.KeyARN, error) {
	if c.Rate < 1 {
		return nil, exit.UsageError("--rate must be at least 1")
	}
	if string(c.To) != o.SealingKeyArn {
		return nil, exit.Refusal(fmt.Sprintf("new credentials are sealed under %s, not under %s: deploy with NextSealingKeyArn first", o.SealingKeyArn, c.To))
	}
	if len(c.From) > 0 {
		return c.From, nil
	}
	if string(c.To) == o.OwnSealingKeyArn {
		return nil, exit.UsageError("--to is the stack's own key: name with --from the key that credentials are under now")
	}
	return []arguments.KeyARN{arguments.KeyARN(o.OwnSealingKeyArn)}, nil
}

type rewrapRun struct {
	*session
	rewrapper *seal.Rewrapper
	pace      *rate.Limiter

	mu          sync.Mutex // of all below
	result      rewrapResult
	inARow      int // moves that failed since the last successful one
	done, total int // of those that were not under the key already
	reported    time.Time
}

func (c credentialRewrap) newRun(s *session, from []arguments.KeyARN) *rewrapRun {
	sources := each(from, func(key arguments.KeyARN) string { return string(key) })
	return &rewrapRun{
		session:   s,
		rewrapper: seal.NewRewrapper(s.kms, string(c.To), sources...),
		// The moves of a tenth of a second may start at once, because timers are too
		// coarse for thousands a second.
		pace:     rate.NewLimiter(rate.Limit(c.Rate), max(c.Rate/10, 1)),
		result:   rewrapResult{To: c.To, From: from, Failed: []rewrapFailure{}},
		reported: s.now(),
	}
}

func (r *rewrapRun) countByKey(ctx context.Context) (map[arguments.KeyARN]int, error) {
	found := map[arguments.KeyARN]int{}
	err := r.walk(ctx, func(_ context.Context, w byok.WrappedKey) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		found[arguments.KeyARN(w.KeyARN)]++
		return nil
	})
	return found, err
}

// moveAll moves all credentials to the key; found has their numbers by key.
func (r *rewrapRun) moveAll(ctx context.Context, found map[arguments.KeyARN]int) error {
	for key, credentials := range found {
		if key != r.result.To {
			r.total += credentials
		}
	}
	err := r.walk(ctx, r.move)
	if err == nil && len(r.result.Failed) > 0 {
		err = errNotAllMoved
	}
	return err
}

func (r *rewrapRun) move(ctx context.Context, w byok.WrappedKey) error {
	if arguments.KeyARN(w.KeyARN) != r.result.To {
		defer r.reportProgress()
		if err := r.pace.Wait(ctx); err != nil {
			return err
		}
	}
	outcome, err := r.wrappedKeys.Rewrap(ctx, w, r.rewrapper)
	return r.count(ctx, w, outcome, err)
}

// reportProgress counts a credential, and now and then reports how many there were.
func (r *rewrapRun) reportProgress() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	if now := r.now(); now.Sub(r.reported) >= progressEvery {
		r.reported = now
		r.note("%d of %d", r.done, r.total)
	}
}

// walk visits every credential, with concurrent segments, until a visit fails.
func (r *rewrapRun) walk(ctx context.Context, visit func(context.Context, byok.WrappedKey) error) error {
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

// count counts the outcome for a credential, and decides whether to go on.
func (r *rewrapRun) count(ctx context.Context, w byok.WrappedKey, outcome byok.RewrapOutcome, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err() // the run had already ended
	case err != nil:
		r.result.Failed = append(r.result.Failed, rewrapFailure{w.Workspace, w.ID, exit.Sentence(err, exit.Uncertain)})
		for _, own := range []error{byok.ErrUnreadable, seal.ErrFormat, seal.ErrKey, seal.ErrDataKey} {
			if errors.Is(err, own) {
				return nil
			}
		}
		if r.inARow++; r.inARow >= failuresInARow {
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

// showCounts shows the number of credentials under each key, and the keys from which a run
// would move them.
func (r *rewrapRun) showCounts(found map[arguments.KeyARN]int) error {
	var views []surveyView
	for _, key := range slices.Sorted(maps.Keys(found)) {
		view := surveyView{Key: key, Credentials: found[key], Status: "refused: name the key with --from if it is yours"}
		if key == r.result.To {
			view.Status = "already there"
		} else if slices.Contains(r.result.From, key) {
			view.Status = "to be rewrapped"
		}
		views = append(views, view)
	}
	return output.List(r.out, views, "key", "credentials", "status")
}

func (v rewrapResult) show(o output.Writer) error {
	v.Failures, v.Took = len(v.Failed), time.Duration(v.Seconds*float64(time.Second)).Round(time.Second/10)
	if err := output.One(o, v); err != nil || o.JSON || len(v.Failed) == 0 {
		return err
	}
	return output.List(o, v.Failed, "credential", "workspace", "reason")
}
