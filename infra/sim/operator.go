package sim

import (
	"context"
	"errors"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

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
	w.Act(name, func(ctx context.Context, c Clients) error {
		return c.Registry.DeleteWorkspace(ctx, w.Tenant.ID, workspace)
	}, func(a Ended) {
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
			if len(a.actor.met) == 0 {
				w.problem("%s: it failed without a fault: %v", a.actor.Name, a.Err)
			}
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

// DeleteCredential makes an actor that deletes a credential.
func (w *World) DeleteCredential(name string, id ids.Credential) {
	w.removed[id] = true
	w.Act(name, func(ctx context.Context, c Clients) error {
		return c.Manager.Delete(ctx, w.Tenant.Workspace, id)
	}, func(a Ended) {
		if a.Err != nil && !errors.Is(a.Err, byok.ErrNotFound) && len(a.actor.met) == 0 {
			w.problem("%s: it failed without a fault: %v", a.actor.Name, a.Err)
		}
	})
}

// Supersede makes an actor that lets one credential take the place of another.
func (w *World) Supersede(name string, old, successor ids.Credential) {
	w.changed[old], w.changed[successor] = true, true
	w.Act(name, func(ctx context.Context, c Clients) error {
		_, err := c.Manager.Supersede(ctx, w.Tenant.Workspace, old, successor, false)
		return err
	}, func(a Ended) {
		known := errors.Is(a.Err, byok.ErrNotFound) || errors.Is(a.Err, byok.ErrSuccessorDisabled) || errors.Is(a.Err, byok.ErrOtherSettings)
		if a.Err != nil && !known && len(a.actor.met) == 0 {
			w.problem("%s: it failed without a fault: %v", a.actor.Name, a.Err)
		}
	})
}
