package sim

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/test/awsmodel"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// registryJudge knows what the operator's acts did to the access table.
type registryJudge struct {
	watched    bool // an act changes the table: it is judged when all actors have ended, if no act is unfinished
	unfinished bool // an act failed before its end
	purged     bool // the tenant's workspace
	restored   bool // the table is older than the credentials
	repaired   bool
}

// act is an act of the operator.
type act struct {
	name string
	run  func(context.Context, Clients) error
	// shows are the facts of its success.
	shows []event
	// attempted are the facts of each attempt without an answer. At most two such
	// attempts count.
	attempted []event
	// refused are the errors with which it may be refused, and the facts that each error
	// shows.
	refused map[error][]event
	lasts   time.Duration // the longest time it may take; 0 means a request's time
	stops   time.Duration // the earliest time it may give up if calls are slow; 0 means after lasts
	// fragile means that any fault may end it. It is then repeated.
	fragile bool
	// rereads means that it reads again after a call without an answer, and so finds that the
	// call was applied.
	rereads bool
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
	do := act{name: name, run: run, refused: map[error][]event{}}
	for _, err := range refused {
		do.refused[err] = nil
	}
	w.act(do)
}

func (w *World) act(do act) { w.actors = append(w.actors, w.operator(do, true)) }

// does makes an actor for an act of the operator that is never refused.
func (w *World) does(name string, run func(context.Context, Clients) error, shows ...event) {
	w.act(act{name: name, run: run, shows: shows})
}

func (w *World) operator(do act, repeats bool) *actor {
	a := w.newActor(do.name)
	a.limit = max(limit, do.lasts)
	var err error
	a.work = func(ctx context.Context) {
		err = do.run(ctx, newClients(environment(a, slog.New(slog.DiscardHandler)).AWS()))
	}
	a.then = func() { w.judgeAct(a, do, err) }
	a.result = func() string {
		if err == nil {
			return "done"
		}
		return err.Error()
	}
	if repeats {
		do.name += again
		a.again = func() *actor { return w.operator(do, false) }
	}
	return a
}

// judgeAct notes the facts that the act shows.
func (w *World) judgeAct(a *actor, do act, err error) {
	for range min(len(a.met), 2) {
		w.showed(a, do.attempted...)
	}
	if err == nil {
		w.showed(a, do.shows...)
		if !do.rereads {
			w.judgeAnswers(a, "done")
		}
		return
	}
	is := func(refusal error) bool { return errors.Is(err, refusal) }
	refused := slices.IndexFunc(refusals, is)
	if refused < 0 || len(a.met) > 0 { // an attempt may have been applied
		for _, e := range do.shows {
			w.showed(a, perhaps(e))
		}
	}
	switch {
	case refused < 0:
		w.registry.unfinished = true
		if !a.metFaultThatStays() && a.took() < cmp.Or(do.stops, a.limit)-time.Second && (!do.fragile || len(a.met) == 0) {
			w.problem("%s: it failed without a fault that stays: %v", a.Name, err)
		}
	case !slices.ContainsFunc(slices.Collect(maps.Keys(do.refused)), is) && (a.repeats == nil || !is(auth.ErrNoKey)):
		w.problem("%s: refused: %v", a.Name, err)
	default:
		w.showed(a, do.refused[refusals[refused]]...)
		if !do.rereads {
			w.judgeAnswers(a, "refused")
		}
	}
}

const defaultWorkspace = "default workspace"

// watchRegistry judges the registry when all acts have ended, and again after their
// repetitions.
func (w *World) watchRegistry() {
	if w.registry.watched {
		return
	}
	w.registry.watched = true
	w.showed(w.past(), sets(defaultWorkspace, "set", func(ids.Workspace) ids.Workspace { return w.Tenant.Workspace }))
	w.finally = append(w.finally, func() {
		w.judgeRegistry()
		account := w.Rows(accessTable).Get(w.t, kit.Key("account#"+string(w.Tenant.ID), "account"))
		stored := ids.Workspace(kit.TextOf(account, "default_workspace"))
		w.showed(atTheEnd, shows(defaultWorkspace, "is "+w.names[string(stored)], func(s ids.Workspace) bool { return s == stored }))
	})
}

// judgeRegistry requires that a key is in all its lists or in none, that a default
// workspace is live, and that no enabled key is bound to a deleted workspace.
func (w *World) judgeRegistry() {
	survey, err := auth.ReadSurvey(w.t.Context(), w.Direct.DB, accessTable)
	w.must(err)
	if len(survey.Missing)+len(survey.Stray)+len(survey.Unknown) > 0 {
		w.problem("list entries are missing: %v, stray: %v, unknown: %v", survey.Missing, survey.Stray, survey.Unknown)
	}
	for _, account := range survey.Accounts {
		if account.Default != "" && !survey.Workspaces[account.Default].DeletedAt.IsZero() {
			w.problem("the default workspace is deleted")
		}
	}
	for hash, key := range survey.Keys {
		switch {
		case key.Fault != nil:
			w.problem("the key %s is damaged: %v", hash.Short(), key.Fault)
		case !key.Disabled && !survey.Workspaces[key.Workspace].DeletedAt.IsZero():
			w.problem("the key %s of a deleted workspace is enabled", hash.Short())
		}
	}
}

// SetDefault makes an actor that makes a workspace the tenant's default.
func (w *World) SetDefault(name string, workspace ids.Workspace) {
	w.watchRegistry()
	w.act(act{
		name: name,
		run: func(ctx context.Context, c Clients) error {
			return c.Registry.SetDefaultWorkspace(ctx, w.Tenant.ID, workspace)
		},
		shows: []event{
			sets(defaultWorkspace, "set to "+w.names[string(workspace)], func(ids.Workspace) ids.Workspace { return workspace }),
			seenOn(workspaceObject(workspace)),
		},
		refused: map[error][]event{auth.ErrWorkspaceDeleted: {seenOff(workspaceObject(workspace))}},
	})
}

// RevokeKey makes an actor that disables an API key of the tenant.
func (w *World) RevokeKey(name, token string) {
	w.does(name, func(ctx context.Context, c Clients) error {
		return c.Registry.DisableKey(ctx, w.Tenant.ID, auth.HashKey(token))
	}, turnedOff(keyObject(token)))
}

// DeleteKey makes an actor that deletes an API key of the tenant.
func (w *World) DeleteKey(name, token string) {
	w.does(name, func(ctx context.Context, c Clients) error {
		return c.Registry.DeleteKey(ctx, w.Tenant.ID, auth.HashKey(token))
	}, turnedOff(keyObject(token)), turnedOff("existence of key "+hashOf(token)[:12]))
}

// DeleteWorkspace makes an actor that deletes a workspace of the tenant. These keys are
// bound to it.
func (w *World) DeleteWorkspace(name string, workspace ids.Workspace, bound ...string) {
	w.watchRegistry()
	w.act(w.deleteWorkspace(name, workspace, bound...))
}

func (w *World) deleteWorkspace(name string, workspace ids.Workspace, bound ...string) act {
	facts := []event{turnedOff(workspaceObject(workspace)), sets(defaultWorkspace, "cleared of "+w.names[string(workspace)], func(s ids.Workspace) ids.Workspace {
		if s == workspace {
			return ""
		}
		return s
	})}
	for _, token := range bound {
		facts = append(facts, turnedOff(keyObject(token)))
	}
	return act{stops: auth.DeletionDelay, name: name, shows: facts, run: func(ctx context.Context, c Clients) error {
		return c.Registry.DeleteWorkspace(ctx, w.Tenant.ID, workspace)
	}}
}

// PurgeWorkspace makes an actor that deletes the tenant's workspace; these keys are bound
// to it. It purges the workspace like the command `workspace purge`: at once, and again
// when all earlier requests have ended. Then nothing is left.
func (w *World) PurgeWorkspace(name string, bound ...string) {
	w.watchRegistry()
	w.files.operator = true
	workspace := w.Tenant.Workspace
	file := Delete{Workspace: workspace, File: theFile}
	if before := w.look(file); before.Left > 0 && before.Visible == 0 {
		w.checks = append(w.checks, func() {
			if w.look(file).Visible > 0 {
				w.problem("%s: a file that was hidden can be read", name)
			}
		})
	}
	do := w.deleteWorkspace(name, workspace, bound...)
	do.lasts, do.fragile = 3*limit, true // it does not repeat a deletion that S3 refuses
	do.shows = append(do.shows, sets(fileObject(workspace, theFile), "purged", func(bool) bool { return false }))
	remove := do.run
	do.run = func(ctx context.Context, c Clients) error {
		w.judgePurged(workspace) // nothing was stored after the first purge
		if err := remove(ctx, c); err != nil {
			return err
		}
		found, err := c.Registry.FindWorkspace(ctx, w.Tenant.ID, workspace)
		quiet := found.DeletedAt.Add(auth.DeletionDelay + limit + 5*time.Second)
		for last := false; err == nil && !last; {
			last = !time.Now().Before(quiet)
			_, credentialsErr := c.Manager.Purge(ctx, workspace)
			_, filesErr := c.Files.Purge(ctx, workspace)
			if err = errors.Join(credentialsErr, filesErr); err == nil && !last {
				time.Sleep(time.Until(quiet))
			}
		}
		w.registry.purged = err == nil
		w.judgePurged(workspace)
		return err
	}
	w.act(do)
}

func (w *World) judgePurged(workspace ids.Workspace) {
	if !w.registry.purged {
		return
	}
	credentials, err := byok.ReadAll(w.t.Context(), w.Direct.DB, credentialsTable, w.Tenant.ID, workspace)
	w.must(err)
	stored, err := w.Direct.Files.Versions(w.t.Context(), workspace)
	w.must(err)
	if len(credentials)+len(stored) > 0 {
		w.problem("%d credentials and %d files are left in a purged workspace", len(credentials), len(stored))
	}
}

// Restore puts the tenant's workspace back to its state before all its credentials, like
// a restored access table.
func (w *World) Restore() {
	w.registry.restored = true
	w.Rows(accessTable).Change(w.t, kit.Key("workspace#"+string(w.Tenant.Workspace), "workspace"), func(row kit.Row) {
		row["next"], row["made"], row["made_bytes"] = &types.AttributeValueMemberM{}, kit.Number("0"), kit.Number("0")
	})
}

// Repair makes an actor that repairs the findings of a survey of the tables, like the
// command `restore repair`.
func (w *World) Repair(name string) {
	w.Command(name, func(ctx context.Context, c Clients) error {
		placements, err := byok.Survey(ctx, c.DB, credentialsTable)
		if err != nil {
			return err
		}
		survey, err := auth.ReadSurvey(ctx, c.DB, accessTable)
		if err != nil {
			return err
		}
		var failed []error
		made := func(err error) {
			if !errors.Is(err, auth.ErrNeedless) {
				failed = append(failed, err)
			}
		}
		for _, place := range survey.Missing {
			made(c.Registry.Relist(ctx, place))
		}
		for _, hash := range slices.Sorted(maps.Keys(survey.Keys)) {
			if key := survey.Keys[hash]; !key.Disabled && !survey.Workspaces[key.Workspace].DeletedAt.IsZero() {
				made(c.Registry.DisableKey(ctx, key.Account, hash))
			}
		}
		next := int64(0) // of the one workspace and provider
		for _, p := range placements {
			next = max(next, p.SortOrder+1)
		}
		if survey.Workspaces[w.Tenant.Workspace].Next[provider] < next {
			made(c.Registry.RaiseCounter(ctx, w.Tenant.Workspace, provider, next))
		}
		if err := errors.Join(failed...); err != nil {
			return err
		}
		w.registry.repaired = true
		return nil
	})
}

// Credential is one that is stored before, by a request to create-byok-key. The simulation
// of another function seals and stores one with byok.NewStore on the Direct clients.
func (w *World) Credential(name string) ids.Credential {
	id := w.Created(name, Create{})
	w.Name(string(id), name)
	return id
}

// DisableCredential makes an actor that disables a credential after a time.
func (w *World) DisableCredential(name string, id ids.Credential, after time.Duration) {
	w.credentials.changed[id] = true
	w.does(name, func(ctx context.Context, c Clients) error {
		time.Sleep(after)
		return c.Manager.Disable(ctx, w.Tenant.Workspace, id)
	})
}

// DeleteCredential makes an actor that deletes a credential.
func (w *World) DeleteCredential(name string, id ids.Credential) {
	w.credentials.removed[id] = true
	w.act(act{
		name: name, run: func(ctx context.Context, c Clients) error { return c.Manager.Delete(ctx, w.Tenant.Workspace, id) },
		refused: map[error][]event{byok.ErrNotFound: nil},
	})
}

// DeletedCredential deletes a credential before all others begin.
func (w *World) DeletedCredential(id ids.Credential) {
	w.credentials.removed[id] = true
	w.must(w.Direct.Manager.Delete(w.t.Context(), w.Tenant.Workspace, id))
}

// Supersede makes an actor that supersedes a credential with its successor. The step that
// disables the old one must leave a successor enabled, in an earlier place. No two
// credentials may ever have the same place.
func (w *World) Supersede(name string, old, successor ids.Credential) {
	w.credentials.changed[old], w.credentials.changed[successor] = true, true
	if w.credentials.successors == nil {
		w.credentials.successors = map[ids.Credential][]ids.Credential{}
		w.checks = append(w.checks, w.watchRotations())
	}
	w.credentials.successors[old] = append(w.credentials.successors[old], successor)
	w.act(act{
		name: name,
		run: func(ctx context.Context, c Clients) error {
			_, err := c.Manager.Supersede(ctx, w.Tenant.Workspace, old, successor)
			if disabled, _, exists := w.credential(old); err == nil && exists && !disabled {
				w.problem("%s: done, and the old one is enabled", name)
			}
			return err
		},
		rereads: true, refused: map[error][]event{byok.ErrNotFound: nil, byok.ErrSuccessorDisabled: nil, byok.ErrOtherSettings: nil},
	})
}

// credential reads a stored credential of the tenant's workspace.
func (w *World) credential(id ids.Credential) (disabled bool, place int64, exists bool) {
	row := w.model.Item(credentialsTable, "workspace#"+string(w.Tenant.Workspace), "credential#"+string(id))
	flag, _ := row["disabled"].(map[string]any)
	disabled, _ = flag["BOOL"].(bool)
	place, exists = awsmodel.Integer(row["sort_order"])
	return disabled, place, exists
}

// watchRotations returns the check of each step for all the credentials that are superseded.
func (w *World) watchRotations() func() {
	was := map[ids.Credential]bool{} // disabled
	return func() {
		disabled, places := map[ids.Credential]bool{}, map[ids.Credential]int64{}
		taken := map[int64]bool{}
		for id := range w.credentials.changed {
			isDisabled, place, exists := w.credential(id)
			if exists && taken[place] {
				w.problem("two credentials have the place %d", place)
			}
			if exists {
				disabled[id], places[id], taken[place] = isDisabled, place, true
			}
		}
		for old, successors := range w.credentials.successors {
			usable := func(id ids.Credential) bool { return !disabled[id] && places[id] < places[old] }
			if disabled[old] && !was[old] && !slices.ContainsFunc(successors, usable) {
				w.problem("%s is disabled, and no successor is enabled in an earlier place", w.names[string(old)])
			}
		}
		was = disabled
	}
}
