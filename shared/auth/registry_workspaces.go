package auth

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/ids"
)

// CreateWorkspace makes a workspace of the account, or returns ErrNoAccount.
func (r *Registry) CreateWorkspace(ctx context.Context, account ids.Account, name string) (ids.Workspace, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	id := ids.New[ids.Workspace]()
	err := r.transact(ctx,
		types.TransactWriteItem{ConditionCheck: r.accountExists(account)},
		r.put(r.newWorkspace(account, id, name)),
		r.list(workspaceOf(account, id)),
	)
	if _, ok := unmet(err, 0); ok {
		return "", ErrNoAccount
	}
	if err != nil {
		return "", fmt.Errorf("creating a workspace: %w", err)
	}
	return id, nil
}

// SetDefaultWorkspace makes the workspace the one meant where a request names
// none. It returns ErrNoWorkspace or ErrWorkspaceDeleted.
func (r *Registry) SetDefaultWorkspace(ctx context.Context, account ids.Account, workspace ids.Workspace) error {
	err := r.transact(ctx,
		types.TransactWriteItem{ConditionCheck: r.workspaceLives(account, workspace)},
		types.TransactWriteItem{Update: &types.Update{
			TableName: &r.table, Key: accountAt(account).attributes(),
			UpdateExpression:          aws.String("SET default_workspace = :workspace"),
			ConditionExpression:       aws.String("attribute_exists(pk)"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":workspace": text(string(workspace))},
		}},
	)
	if row, ok := unmet(err, 0); ok {
		return whyNotLive(row, account)
	}
	if err != nil {
		return fmt.Errorf("setting the default workspace: %w", err)
	}
	return nil
}

// FindWorkspace looks up a workspace of the account, deleted or not; without an
// id it is the account's default. It returns ErrNoAccount or ErrNoWorkspace.
func (r *Registry) FindWorkspace(ctx context.Context, account ids.Account, id ids.Workspace) (Workspace, error) {
	owner, err := r.account(ctx, account)
	if err != nil {
		return Workspace{}, err
	}
	if id == "" {
		id = owner.DefaultWorkspace
	}
	var row workspaceItem
	found, err := get(ctx, r.db, r.table, workspaceAt(id), &row)
	switch {
	case err != nil:
		return Workspace{}, fmt.Errorf("looking up the workspace: %w", err)
	case found.fault != nil:
		return Workspace{}, fmt.Errorf("stored workspace %s: %w", id, found.fault)
	case row.Account != account:
		return Workspace{}, ErrNoWorkspace
	}
	workspace := row.workspace()
	workspace.Default = id == owner.DefaultWorkspace
	return workspace, nil
}

// newWorkspace is the row of a new workspace. Its counters are an empty map, not
// an absent one: a claim sets a member of it.
func (r *Registry) newWorkspace(account ids.Account, id ids.Workspace, name string) workspaceItem {
	return workspaceItem{
		primaryKey: workspaceAt(id), Version: itemVersion,
		Account: account, Name: name, CreatedAt: r.now().Unix(), Next: map[string]int64{},
	}
}

func (r *Registry) accountExists(id ids.Account) *types.ConditionCheck {
	return &types.ConditionCheck{
		TableName: &r.table, Key: accountAt(id).attributes(),
		ConditionExpression: aws.String("attribute_exists(pk)"),
	}
}

// workspaceLives is the condition that the workspace is live and the account's;
// what stands there instead comes back with its failure, for whyNotLive.
func (r *Registry) workspaceLives(account ids.Account, id ids.Workspace) *types.ConditionCheck {
	return &types.ConditionCheck{
		TableName: &r.table, Key: workspaceAt(id).attributes(),
		ConditionExpression:                 aws.String("account = :account AND attribute_not_exists(deleted_at)"),
		ExpressionAttributeValues:           map[string]types.AttributeValue{":account": text(string(account))},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// whyNotLive tells the account its deleted workspace from one that is not its own.
func whyNotLive(row map[string]types.AttributeValue, account ids.Account) error {
	var workspace workspaceItem
	if err := decode(row, &workspace); err != nil || workspace.Account != account {
		return ErrNoWorkspace
	}
	return ErrWorkspaceDeleted
}
