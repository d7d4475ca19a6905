package sim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// registryJudge knows the operator's acts on the access table.
type registryJudge struct {
	watched  bool
	restored bool // the table is older than the credentials
	purged   bool // the tenant's workspace
}

const defaultWorkspace = "default workspace"

// watchRegistry judges the registry when all actors have ended, and again after their
// repetitions.
func (w *World) watchRegistry() {
	if w.registry.watched {
		return
	}
	w.registry.watched = true
	w.showed(w.past(), sets(defaultWorkspace, "set", w.Tenant.Workspace))
	w.whenEnded = append(w.whenEnded, func() {
		if !slices.ContainsFunc(w.performances, func(p *performance) bool { return p.unfinished }) {
			w.judgeRegistry()
		}
	})
	w.finally = append(w.finally, w.judgeRegistry, w.judgeDefault)
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
		case key.Damage != nil:
			w.problem("the key %s is damaged: %v", hash.Short(), key.Damage)
		case !key.Disabled && !survey.Workspaces[key.Workspace].DeletedAt.IsZero():
			w.problem("the key %s of a deleted workspace is enabled", hash.Short())
		}
	}
}

func (w *World) judgeDefault() {
	account := w.Rows(accessTable).Get(w.t, kit.Key("account#"+string(w.Tenant.ID), "account"))
	stored := ids.Workspace(kit.TextOf(account, "default_workspace"))
	w.showed(atTheEnd, shows(defaultWorkspace, "is "+w.names[string(stored)], func(s ids.Workspace) bool { return s == stored }))
}

// SetDefault makes an actor that makes a workspace the tenant's default.
func (w *World) SetDefault(name string, workspace ids.Workspace) {
	w.watchRegistry()
	w.acts(act{
		name: name,
		run: func(ctx context.Context, c Clients) error {
			return c.Registry.SetDefaultWorkspace(ctx, w.Tenant.ID, workspace)
		},
		shows: []fact{
			sets(defaultWorkspace, "set to "+w.names[string(workspace)], workspace),
			seenOn(workspaceObject(workspace)),
		},
		refused: map[error][]fact{auth.ErrWorkspaceDeleted: {seenOff(workspaceObject(workspace))}},
	})
}

// RevokeKey makes an actor that disables an API key of the tenant.
func (w *World) RevokeKey(name, token string) {
	w.acts(act{name: name, shows: []fact{turnedOff(keyObject(token))}, run: func(ctx context.Context, c Clients) error {
		return c.Registry.DisableKey(ctx, w.Tenant.ID, auth.HashKey(token))
	}})
}

// DeleteKey makes an actor that deletes an API key of the tenant.
func (w *World) DeleteKey(name, token string) {
	gone := []fact{turnedOff(keyObject(token)), turnedOff(existence(hashOf(token)))}
	w.acts(act{name: name, shows: gone, run: func(ctx context.Context, c Clients) error {
		return c.Registry.DeleteKey(ctx, w.Tenant.ID, auth.HashKey(token))
	}})
}

// DeleteWorkspace makes an actor that deletes a workspace of the tenant. These keys are
// bound to it.
func (w *World) DeleteWorkspace(name string, workspace ids.Workspace, bound ...string) {
	w.watchRegistry()
	w.acts(w.deleteWorkspace(name, workspace, bound...))
}

func (w *World) deleteWorkspace(name string, workspace ids.Workspace, bound ...string) act {
	facts := []fact{turnedOff(workspaceObject(workspace)), on(defaultWorkspace, "cleared of "+w.names[string(workspace)], func(s ids.Workspace) (bool, ids.Workspace) {
		if s == workspace {
			s = ""
		}
		return true, s
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
	file := Delete{Workspace: w.Tenant.Workspace, File: theFile}
	if before := w.look(file); before.Left > 0 && before.Visible == 0 {
		w.eachStep = append(w.eachStep, func() {
			if w.look(file).Visible > 0 {
				w.problem("%s: a file that was hidden can be read", name)
			}
		})
	}
	do := w.deleteWorkspace(name, w.Tenant.Workspace, bound...)
	do.files, do.lasts, do.fragile = true, 3*limit, true // it does not repeat a deletion that S3 refuses
	do.shows = append(do.shows, sets(fileObject(w.Tenant.Workspace, theFile), "purged", false))
	do.run = w.purge
	w.acts(do)
}

func (w *World) purge(ctx context.Context, c Clients) error {
	if w.registry.purged {
		w.judgePurged() // nothing was stored after the first purge
	}
	err := w.purgeTwice(ctx, c)
	if w.registry.purged = err == nil; err == nil {
		w.judgePurged()
	}
	return err
}

func (w *World) purgeTwice(ctx context.Context, c Clients) error {
	workspace := w.Tenant.Workspace
	if err := c.Registry.DeleteWorkspace(ctx, w.Tenant.ID, workspace); err != nil {
		return err
	}
	found, err := c.Registry.FindWorkspace(ctx, w.Tenant.ID, workspace)
	if err != nil {
		return err
	}
	quiet := found.DeletedAt.Add(auth.DeletionDelay + limit + 5*time.Second)
	for {
		late := !time.Now().Before(quiet)
		_, credentialsErr := c.Manager.Purge(ctx, workspace)
		_, filesErr := c.Files.Purge(ctx, workspace)
		if err := errors.Join(credentialsErr, filesErr); err != nil || late {
			return err
		}
		time.Sleep(time.Until(quiet))
	}
}

func (w *World) judgePurged() {
	credentials, err := byok.ReadAll(w.t.Context(), w.Direct.DB, credentialsTable, w.Tenant.ID, w.Tenant.Workspace)
	w.must(err)
	stored, err := w.Direct.Files.Versions(w.t.Context(), w.Tenant.Workspace)
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
	w.watchRegistry()
	w.acts(act{name: name, run: w.repair, repairs: true})
}

// repairedBefore reports whether the actor began after a repair.
func (w *World) repairedBefore(a *actor) bool {
	return slices.ContainsFunc(w.performances, func(p *performance) bool { return p.act.repairs && p.before(a) && p.err == nil })
}

func (w *World) repair(ctx context.Context, c Clients) error {
	placements, err := byok.Survey(ctx, c.DB, credentialsTable)
	if err != nil {
		return err
	}
	survey, err := auth.ReadSurvey(ctx, c.DB, accessTable)
	if err != nil {
		return err
	}
	var failed []error
	for _, entry := range survey.Missing {
		failed = append(failed, c.Registry.Relist(ctx, entry))
	}
	for _, hash := range slices.Sorted(maps.Keys(survey.Keys)) {
		if key := survey.Keys[hash]; !key.Disabled && !survey.Workspaces[key.Workspace].DeletedAt.IsZero() {
			failed = append(failed, c.Registry.DisableKey(ctx, key.Account, hash))
		}
	}
	next := int64(0) // of the one workspace and provider
	for _, p := range placements {
		next = max(next, p.SortOrder+1)
	}
	if survey.Workspaces[w.Tenant.Workspace].Next[provider] < next {
		failed = append(failed, c.Registry.RaiseCounter(ctx, w.Tenant.Workspace, provider, next))
	}
	return errors.Join(slices.DeleteFunc(failed, func(err error) bool { return errors.Is(err, auth.ErrNeedless) })...)
}
