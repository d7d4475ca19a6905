package auth

import (
	"context"
	"fmt"

	"signalbox.dev/shared/ids"
)

// firstWorkspace is the name of the workspace that an account begins with.
const firstWorkspace = "default"

// CreateAccount makes an account with a first workspace, its default, both or
// neither.
func (r *Registry) CreateAccount(ctx context.Context, name string) (ids.Account, ids.Workspace, error) {
	if err := checkName(name); err != nil {
		return "", "", err
	}
	account, workspace := ids.New[ids.Account](), ids.New[ids.Workspace]()
	err := r.transact(ctx,
		r.put(accountItem{
			primaryKey: accountAt(account), Version: itemVersion,
			Name: name, DefaultWorkspace: workspace, CreatedAt: r.now().Unix(),
		}),
		r.put(r.newWorkspace(account, workspace, firstWorkspace)),
		r.list(workspaceOf(account, workspace)),
	)
	if err != nil {
		return "", "", fmt.Errorf("creating an account: %w", err)
	}
	return account, workspace, nil
}

// CheckAccount returns ErrNoAccount where there is no such account.
func (r *Registry) CheckAccount(ctx context.Context, id ids.Account) error {
	_, err := r.account(ctx, id)
	return err
}
