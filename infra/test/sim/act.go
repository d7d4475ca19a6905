package sim

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/syncjobs"
)

// act is an act of the operator.
type act struct {
	name string
	run  func(context.Context, Clients) error
	// shows are the facts of its success.
	shows []fact
	// attempted are the facts of each attempt without an answer. At most two such
	// attempts count.
	attempted []fact
	// refused are the errors with which it may be refused, and the facts that each error
	// shows.
	refused map[error][]fact
	lasts   time.Duration // the longest time it may take; 0 means a request's time
	stops   time.Duration // the earliest time it may give up if calls are slow; 0 means after lasts
	// fragile means that any fault may end it. It is then repeated.
	fragile bool
	// rereads means that it reads again after a call without an answer, and so finds that the
	// call was applied.
	rereads bool
	files   bool // it changes files
	repairs bool // it repairs a restored table
}

// refusals are all errors with which an act is refused. It has then changed nothing.
var refusals = []error{
	auth.ErrNoAccount, auth.ErrNoKey, auth.ErrNoWorkspace, auth.ErrWorkspaceDeleted, auth.ErrInvalid, auth.ErrNeedless,
	byok.ErrNotFound, byok.ErrSuccessorDisabled, byok.ErrOtherSettings, files.ErrExists, syncjobs.ErrState,
}

// Command makes an actor for an act of the operator. It may be refused only with these
// errors, and may fail only after a fault that stays.
func (w *World) Command(name string, run func(context.Context, Clients) error, refused ...error) {
	w.watchRegistry()
	w.acts(act{name: name, run: run, refused: without(refused)})
}

// without are refusals that show no fact.
func without(refused []error) map[error][]fact {
	all := map[error][]fact{}
	for _, err := range refused {
		all[err] = nil
	}
	return all
}

// acts adds an actor for the act to the run, and one for its repetition.
func (w *World) acts(do act) {
	w.actors = append(w.actors, w.perform(do, true))
}

func (w *World) perform(do act, repeated bool) *actor {
	a := w.newActor(do.name)
	a.limit = max(limit, do.lasts)
	p := &performance{actor: a, act: do, repeated: repeated}
	a.work, w.performances = p, append(w.performances, p)
	return a
}

// performance is the work of the operator: an act and its outcome.
type performance struct {
	*actor
	act      act
	repeated bool // it is done once more when all actors have ended

	err        error
	unfinished bool // it failed, and may have changed something
}

func (p *performance) do(ctx context.Context) {
	p.err = p.act.run(ctx, newClients(environment(p.actor, slog.New(slog.DiscardHandler)).AWS()))
}

func (p *performance) result() string {
	if p.err == nil {
		return "done"
	}
	return p.err.Error()
}

func (p *performance) again() *actor {
	if !p.repeated {
		return nil
	}
	do := p.act
	do.name += again
	return p.world.perform(do, false)
}

func (p *performance) show() {
	for range min(len(p.met), 2) {
		p.world.showed(p.actor, p.act.attempted...)
	}
	refused := slices.IndexFunc(refusals, p.failedWith)
	switch {
	case p.err == nil:
		p.succeeded("done", p.act.shows)
	case refused < 0:
		p.unfinished = true
		p.mayHaveApplied()
		p.judgeFailure()
	default:
		if len(p.met) > 0 {
			p.mayHaveApplied()
		}
		p.judgeRefusal(refusals[refused])
	}
}

func (p *performance) failedWith(refusal error) bool { return errors.Is(p.err, refusal) }

// succeeded notes the facts of an act that got its last answers.
func (p *performance) succeeded(as string, facts []fact) {
	p.world.showed(p.actor, facts...)
	if !p.act.rereads {
		p.world.judgeAnswers(p.actor, as)
	}
}

// mayHaveApplied notes that an attempt without an answer may have been applied.
func (p *performance) mayHaveApplied() {
	for _, f := range p.act.shows {
		p.world.showed(p.actor, perhaps(f))
	}
}

func (p *performance) judgeFailure() {
	excused := p.metFaultThatStays() || p.took() >= cmp.Or(p.act.stops, p.limit)-time.Second || p.act.fragile && len(p.met) > 0
	if !excused {
		p.world.problem("%s: it failed without a fault that stays: %v", p.Name, p.err)
	}
}

func (p *performance) judgeRefusal(refusal error) {
	allowed := slices.ContainsFunc(slices.Collect(maps.Keys(p.act.refused)), p.failedWith) || p.repeats != nil && p.failedWith(auth.ErrNoKey)
	if !allowed {
		p.world.problem("%s: refused: %v", p.Name, p.err)
		return
	}
	p.succeeded("refused", p.act.refused[refusal])
}
