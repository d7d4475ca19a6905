package auth

import (
	"context"
	"fmt"

	"signalbox.dev/shared/ids"
)

// Workspaces answers which workspace a request is about.
type Workspaces struct {
	db    itemGetter
	table string
}

// NewWorkspaces reads workspaces from the access table of that name.
func NewWorkspaces(db itemGetter, table string) *Workspaces {
	return &Workspaces{db: db, table: table}
}

// Found is a workspace that was looked up before it was known who asks. What
// it is can be learnt only by naming the caller.
type Found struct {
	id   ids.Workspace
	item workspaceItem
}

// Find looks a workspace up. That it does not exist shows in For.
func (w *Workspaces) Find(ctx context.Context, id ids.Workspace) (Found, error) {
	f := Found{id: id}
	found, err := get(ctx, w.db, w.table, workspaceAt(id), &f.item)
	if err != nil {
		return Found{}, fmt.Errorf("looking up the workspace: %w", err)
	}
	if found.fault != nil {
		return Found{}, fmt.Errorf("stored workspace %s: %w", id, found.fault)
	}
	return f, nil
}

// For yields the workspace if the caller may reach it, else ErrNoWorkspace.
func (f Found) For(c Caller) (ids.Workspace, error) {
	bound, isBound := c.Bound()
	if !f.item.live(c.account) || isBound && bound != f.id {
		return "", ErrNoWorkspace
	}
	return f.id, nil
}

// Default is the workspace meant where a request names none: the key's own, or
// else the account's default. ErrNoWorkspace where there is none. A default
// that is set is live: deleting a workspace clears it in the same transaction.
func (w *Workspaces) Default(ctx context.Context, c Caller) (ids.Workspace, error) {
	if bound, ok := c.Bound(); ok {
		return bound, nil
	}
	var account accountItem
	found, err := get(ctx, w.db, w.table, accountAt(c.account), &account)
	if err != nil {
		return "", fmt.Errorf("looking up the account: %w", err)
	}
	if found.fault != nil {
		return "", fmt.Errorf("stored account %s: %w", c.account, found.fault)
	}
	if account.DefaultWorkspace == "" {
		return "", ErrNoWorkspace
	}
	return account.DefaultWorkspace, nil
}
