package auth

import (
	"context"
	"fmt"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// Workspaces looks up workspaces for requests.
type Workspaces struct {
	db    calls.ItemGetter
	table string
}

// NewWorkspaces reads workspaces from the access table.
func NewWorkspaces(db calls.ItemGetter, table string) *Workspaces {
	return &Workspaces{db: db, table: table}
}

// Found is a workspace that was looked up before its caller was verified. Only For
// reveals it.
type Found struct {
	lookup[workspaceItem]
	id ids.Workspace
}

// Find looks a workspace up. It does not fail for a missing or damaged
// workspace; For does.
func (w *Workspaces) Find(ctx context.Context, id ids.Workspace) (Found, error) {
	found, err := get[workspaceItem](ctx, w.db, w.table, workspaceAt(id))
	if err != nil {
		return Found{}, fmt.Errorf("looking up the workspace: %w", err)
	}
	return Found{found, id}, nil
}

// For yields the workspace if the caller may reach it, else ErrNoWorkspace. If the
// workspace is damaged, a caller who may reach it gets another error.
func (f Found) For(c Caller) (ids.Workspace, error) {
	if bound, isBound := c.Bound(); isBound && bound != f.id {
		return "", ErrNoWorkspace
	}
	if err := f.check(c.account); err != nil {
		return "", err
	}
	return f.id, nil
}

// check returns ErrNoWorkspace if the workspace is absent, deleted or another account's. If its
// row is damaged, its own account gets its damage.
func (f Found) check(account ids.Account) error {
	switch {
	case f.row.Account == "" || f.row.Account != account:
		return ErrNoWorkspace
	case f.damage != nil:
		return f.damage
	case f.row.DeletedAt != nil:
		return ErrNoWorkspace
	}
	return nil
}

// Damage says what is wrong with a damaged row. It is for the log; a caller gets
// the error of For.
func (f Found) Damage() error { return f.damage }

// Default is the workspace of a request that names none: the key's own, or else the
// account's default. The error is ErrNoWorkspace if there is neither. A default
// that is set is live: deleting a workspace clears it in the same transaction.
func (w *Workspaces) Default(ctx context.Context, c Caller) (ids.Workspace, error) {
	if bound, ok := c.Bound(); ok {
		return bound, nil
	}
	found, err := get[accountItem](ctx, w.db, w.table, accountAt(c.account))
	if err != nil {
		return "", fmt.Errorf("looking up the account: %w", err)
	}
	if found.damage != nil {
		return "", found.damage
	}
	if found.row.DefaultWorkspace == "" {
		return "", ErrNoWorkspace
	}
	return found.row.DefaultWorkspace, nil
}
