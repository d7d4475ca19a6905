//go:build !lambda

package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// CreateWorkspace makes a workspace of the account, or returns ErrNoAccount. After an
// error with an id, the workspace may be stored.
func (r *Registry) CreateWorkspace(ctx context.Context, account ids.Account, name string) (ids.Workspace, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	id := ids.New[ids.Workspace]()
	err := r.transact(ctx, "creating a workspace",
		r.check(accountAt(account), "attribute_exists(pk)", nil).refusing(ErrNoAccount),
		r.put(r.newWorkspace(account, id, name)),
		r.addEntry(workspaceEntry(account, id)),
	)
	return id, err
}

// SetDefaultWorkspace makes the workspace the account's default. A request that names no
// workspace uses it, unless its API key is bound to one. SetDefaultWorkspace returns
// ErrNoWorkspace or ErrWorkspaceDeleted.
func (r *Registry) SetDefaultWorkspace(ctx context.Context, account ids.Account, workspace ids.Workspace) error {
	return r.transact(ctx, "setting the default workspace",
		r.workspaceLives(account, workspace),
		r.change(accountAt(account), "SET default_workspace = :workspace", "attribute_exists(pk)", values{":workspace": calls.Text(string(workspace))}),
	)
}

// FindWorkspace looks up a workspace of the account, also a deleted one. Without an id
// it looks up the account's default. It returns ErrNoAccount or ErrNoWorkspace.
func (r *Registry) FindWorkspace(ctx context.Context, account ids.Account, id ids.Workspace) (Workspace, error) {
	owner, err := r.account(ctx, account)
	if err != nil {
		return Workspace{}, err
	}
	if id == "" {
		id = owner.Default
	}
	found, err := get[workspaceItem](ctx, r.db, r.table, workspaceAt(id))
	switch {
	case err != nil:
		return Workspace{}, fmt.Errorf("looking up the workspace: %w", err)
	case !found.exists, found.row.Account != account:
		return Workspace{}, ErrNoWorkspace
	case found.damage != nil:
		return Workspace{}, found.damage
	}
	workspace := found.row.workspace(nil)
	workspace.Default = id == owner.Default
	return workspace, nil
}

// newWorkspace is the row of a new workspace. Its counters start as an empty map because
// Positions can only set a member of an existing map.
func (r *Registry) newWorkspace(account ids.Account, id ids.Workspace, name string) workspaceItem {
	return workspaceItem{
		header:  newHeader(workspaceAt(id)),
		Account: account, Name: name, CreatedAt: r.now().Unix(), Next: map[string]int64{},
		Made: new(int64), MadeBytes: new(int64),
	}
}

// accountActive is the condition that the account exists and is not suspended.
func (r *Registry) accountActive(id ids.Account) write {
	w := r.check(accountAt(id), "attribute_exists(pk) AND (attribute_not_exists(suspended) OR suspended = :false)",
		values{":false": calls.Bool(false)})
	w.refusal = func(row map[string]types.AttributeValue) error {
		if row == nil {
			return ErrNoAccount
		}
		return ErrSuspended
	}
	return w
}

// workspaceLives is the condition that the workspace is live and the account's.
func (r *Registry) workspaceLives(account ids.Account, id ids.Workspace) write {
	return r.check(workspaceAt(id), isLive, liveFor(account)).refusingUnlessLive(account)
}

// liveFor are the values of isLive.
func liveFor(account ids.Account) values {
	return values{":account": calls.Text(string(account)), ":v": calls.Number(itemVersion)}
}

// refusingUnlessLive returns the write of a workspace with the reason why it is not live.
func (w write) refusingUnlessLive(account ids.Account) write {
	w.refusal = func(row map[string]types.AttributeValue) error { return whyNotLive(row, account) }
	return w
}

// whyNotLive is the error for a workspace that fails isLive. Other accounts get
// ErrNoWorkspace; the owner gets the reason.
func whyNotLive(row map[string]types.AttributeValue, account ids.Account) error {
	workspace, damage := decode[workspaceItem](row)
	switch {
	case workspace.Account == "" || workspace.Account != account:
		return ErrNoWorkspace
	case damage != nil:
		return damage
	}
	return ErrWorkspaceDeleted
}

// DeleteWorkspace marks the workspace as deleted and, in the same transaction, removes it as
// its account's default. After that no key can be bound to it, and no bound key enabled. Then
// it disables the keys in the workspace's list, until it finds no enabled one. It leaves a key
// whose row names another account. A key that it cannot disable stops no other. After an error,
// deleting it again finishes the rest. It returns ErrNoAccount or ErrNoWorkspace.
func (r *Registry) DeleteWorkspace(ctx context.Context, account ids.Account, workspace ids.Workspace) error {
	if err := r.markDeleted(ctx, account, workspace); err != nil {
		return err
	}
	for {
		tried, err := r.disableBound(ctx, account, workspace)
		if err != nil {
			return fmt.Errorf("disabling the keys of a deleted workspace: %w", err)
		}
		if tried == 0 {
			return nil
		}
	}
}

// DeletionDelay is the longest time from a workspace's DeletedAt until its deletion
// takes effect. A purge waits for requests that began before then.
const DeletionDelay = 5 * time.Second

// markDeleted returns nil also if the workspace is already deleted. Each attempt stores
// its own time.
func (r *Registry) markDeleted(ctx context.Context, account ids.Account, workspace ids.Workspace) error {
	for attempt := 1; ; attempt++ {
		owner, err := r.account(ctx, account)
		if err != nil {
			return err
		}
		withoutDefault := r.isNotDefault(account, workspace)
		if owner.Default == workspace {
			withoutDefault = r.clearDefault(account, workspace)
		}
		v := liveFor(account)
		v[":now"] = calls.Number(r.now().Unix())
		mark := r.change(workspaceAt(workspace), "SET deleted_at = :now", isLive, v).refusingUnlessLive(account)
		writes := []write{mark, withoutDefault.refusing(errOtherDefault)}
		bounded, cancel := context.WithTimeout(ctx, DeletionDelay)
		_, err = r.db.TransactWriteItems(bounded, inputOf(writes))
		cancel()
		switch err = refusalOf(err, writes); {
		case err == nil, errors.Is(err, ErrWorkspaceDeleted):
			return nil
		case errors.Is(err, errOtherDefault), inConflict(err) && calls.Pause(ctx, attempt) == nil:
		default:
			return fmt.Errorf("deleting a workspace: %w", err)
		}
	}
}

// errOtherDefault means that the account's default workspace was changed since it was read.
var errOtherDefault = errors.New("the default workspace was changed in between")

// clearDefault removes the account's default workspace, if it is this one.
func (r *Registry) clearDefault(account ids.Account, workspace ids.Workspace) write {
	return r.change(accountAt(account), "REMOVE default_workspace", "default_workspace = :workspace", values{":workspace": calls.Text(string(workspace))})
}

// isNotDefault is the condition that the workspace is not the account's default.
func (r *Registry) isNotDefault(account ids.Account, workspace ids.Workspace) write {
	return r.check(accountAt(account), "attribute_not_exists(default_workspace) OR default_workspace <> :workspace",
		values{":workspace": calls.Text(string(workspace))})
}

// disableBound disables the enabled keys of the workspace and returns how many there were. A
// damaged key is among them: somebody may put its row right. It passes over a key that was just
// deleted or put right. It tries every key before it returns an error.
func (r *Registry) disableBound(ctx context.Context, account ids.Account, workspace ids.Workspace) (tried int, err error) {
	keys, err := r.ListBoundKeys(ctx, workspace)
	if err != nil {
		return 0, err
	}
	var failed []error
	for _, key := range keys {
		if key.Disabled || key.Account != account && key.Account != "" {
			continue
		}
		tried++
		if err := r.DisableKey(ctx, key.Account, key.Hash); !errors.Is(err, ErrNoKey) {
			failed = append(failed, err)
		}
	}
	return tried, errors.Join(failed...)
}
