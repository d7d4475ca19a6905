package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// refusals are the errors by which an act is refused: it changed nothing.
var refusals = []error{
	auth.ErrNoAccount, auth.ErrNoKey, auth.ErrNoWorkspace, auth.ErrWorkspaceDeleted, auth.ErrInvalid, auth.ErrNeedless,
	byok.ErrNotFound, byok.ErrSuccessorDisabled, byok.ErrOtherSettings,
}

// Command makes an actor of the operator's. It may be refused with these errors only, and
// fails only after a fault that stays.
func (w *World) Command(name string, act func(context.Context, Clients) error, allowed ...error) {
	w.watchRegistry()
	w.Act(name, act, func(a Ended) { w.judgeCommand(a, allowed...) })
}

func (w *World) judgeCommand(a Ended, allowed ...error) {
	is := func(refusal error) bool { return errors.Is(a.Err, refusal) }
	w.unfinished = w.unfinished || a.Err != nil && !slices.ContainsFunc(refusals, is)
	switch {
	case a.Err == nil || slices.ContainsFunc(allowed, is) || a.Again && is(auth.ErrNoKey):
	case slices.ContainsFunc(refusals, is):
		w.problem("%s: refused: %v", a.actor.Name, a.Err)
	case !a.actor.metFaultThatStays() && a.actor.took() < limit-time.Second:
		w.problem("%s: it failed without a fault that stays: %v", a.actor.Name, a.Err)
	}
}

const defaultWorkspace = "default workspace"

// watchRegistry judges the registry when all acts are through, and again after their
// repetitions.
func (w *World) watchRegistry() {
	if w.settled != nil {
		return
	}
	w.settled = w.judgeRegistry
	w.given(sets(defaultWorkspace, "set", func(ids.Workspace) ids.Workspace { return w.Tenant.Workspace }))
	w.finally = append(w.finally, func() {
		w.judgeRegistry()
		row, _ := w.model.Item(accessTable, "account#"+string(w.Tenant.ID), "account")["default_workspace"].(*types.AttributeValueMemberS)
		stored := ids.Workspace("")
		if row != nil {
			stored = ids.Workspace(row.Value)
		}
		w.showed(&actor{beganAt: last, Name: "at the end"}, shows(defaultWorkspace, "is "+w.names[string(stored)], func(s ids.Workspace) bool { return s == stored }))
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
			w.problem("the key %s is half there: %v", hash.Short(), key.Fault)
		case !key.Disabled && !survey.Workspaces[key.Workspace].DeletedAt.IsZero():
			w.problem("the key %s of a deleted workspace is enabled", hash.Short())
		}
	}
}

// SetDefault makes an actor that makes a workspace the tenant's default.
func (w *World) SetDefault(name string, workspace ids.Workspace) {
	w.watchRegistry()
	set := sets(defaultWorkspace, "set to "+w.names[string(workspace)], func(ids.Workspace) ids.Workspace { return workspace })
	w.Act(name, func(ctx context.Context, c Clients) error {
		return c.Registry.SetDefaultWorkspace(ctx, w.Tenant.ID, workspace)
	}, func(a Ended) {
		w.judgeCommand(a, auth.ErrWorkspaceDeleted)
		switch {
		case a.Err == nil:
			w.showed(a.actor, set, seenOn(workspaceObject(workspace)))
		case errors.Is(a.Err, auth.ErrWorkspaceDeleted):
			w.showed(a.actor, seenOff(workspaceObject(workspace)))
		default:
			w.showed(a.actor, perhaps(set))
		}
	})
}

// RevokeKey makes an actor that disables an API key of the tenant's.
func (w *World) RevokeKey(name, token string) {
	w.Act(name, func(ctx context.Context, c Clients) error {
		return c.Registry.DisableKey(ctx, w.Tenant.ID, auth.HashKey(token))
	}, w.off(keyObject(token)))
}

// DeleteKey makes an actor that deletes an API key of the tenant's.
func (w *World) DeleteKey(name, token string) {
	gone := w.off(keyObject(token))
	w.Act(name, func(ctx context.Context, c Clients) error {
		return c.Registry.DeleteKey(ctx, w.Tenant.ID, auth.HashKey(token))
	}, func(a Ended) {
		gone(a)
		w.off("existence of key " + hashOf(token)[:12])(a)
	})
}

// DeleteWorkspace makes an actor that deletes a workspace of the tenant's, to which
// these keys are bound.
func (w *World) DeleteWorkspace(name string, workspace ids.Workspace, bound ...string) {
	w.watchRegistry()
	w.Act(name, func(ctx context.Context, c Clients) error {
		return c.Registry.DeleteWorkspace(ctx, w.Tenant.ID, workspace)
	}, func(a Ended) {
		cleared := sets(defaultWorkspace, "cleared of "+w.names[string(workspace)], func(s ids.Workspace) ids.Workspace {
			if s == workspace {
				return ""
			}
			return s
		})
		if a.Err != nil {
			cleared = perhaps(cleared)
		}
		w.showed(a.actor, cleared)
		w.off(workspaceObject(workspace))(a)
		for _, token := range bound {
			w.off(keyObject(token))(a)
		}
	})
}

// off notes that an act has turned the object off, or perhaps.
func (w *World) off(object string) func(Ended) {
	return func(a Ended) {
		switch {
		case a.Err == nil:
			w.showed(a.actor, turnedOff(object))
		case errors.Is(a.Err, auth.ErrNoKey) || errors.Is(a.Err, auth.ErrNoWorkspace):
			if len(a.actor.met) == 0 && !a.Again {
				w.problem("%s: refused: %v", a.actor.Name, a.Err)
			}
		default:
			w.judgeCommand(a)
			w.showed(a.actor, perhaps(turnedOff(object)))
		}
	}
}

// Credential is one that is stored before.
func (w *World) Credential(name string) ids.Credential {
	id := w.Created(name, Create{Workspace: w.Tenant.Workspace})
	w.Name(string(id), name)
	return id
}

// DisableCredential makes an actor that disables a credential.
func (w *World) DisableCredential(name string, id ids.Credential) {
	w.changed[id] = true
	w.Act(name, func(ctx context.Context, c Clients) error {
		return c.Manager.Disable(ctx, w.Tenant.Workspace, id)
	}, w.off("credential "+string(id)))
}

// DeleteCredential makes an actor that deletes a credential, and lets its workspace be
// counted if it is full.
func (w *World) DeleteCredential(name string, id ids.Credential) {
	w.removed[id] = true
	w.Act(name, func(ctx context.Context, c Clients) error { return w.deleteCredential(ctx, c, id) }, func(a Ended) {
		w.judgeCommand(a, byok.ErrNotFound)
	})
}

// DeletedCredential deletes a credential before all others begin.
func (w *World) DeletedCredential(id ids.Credential) {
	w.removed[id] = true
	w.must(w.deleteCredential(w.t.Context(), w.Direct, id))
}

func (w *World) deleteCredential(ctx context.Context, c Clients, id ids.Credential) error {
	if err := c.Manager.Delete(ctx, w.Tenant.Workspace, id); err != nil {
		return err
	}
	return c.Registry.MakeRoom(ctx, w.Tenant.Workspace)
}

// Supersede makes an actor that supersedes a credential with its successor.
func (w *World) Supersede(name string, old, successor ids.Credential) {
	w.changed[old], w.changed[successor] = true, true
	w.Act(name, func(ctx context.Context, c Clients) error {
		_, err := c.Manager.Supersede(ctx, w.Tenant.Workspace, old, successor, false)
		return err
	}, func(a Ended) {
		w.judgeCommand(a, byok.ErrNotFound, byok.ErrSuccessorDisabled, byok.ErrOtherSettings)
	})
}
