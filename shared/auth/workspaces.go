package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// Workspaces looks up the workspace that a request names or means.
type Workspaces struct {
	db    itemGetter
	table string
}

// NewWorkspaces reads workspaces from the access table of that name.
func NewWorkspaces(db itemGetter, table string) *Workspaces {
	return &Workspaces{db: db, table: table}
}

// Found is a workspace that was looked up before its caller was verified. Only For
// reveals it.
type Found struct {
	id      ids.Workspace
	account ids.Account // "" where the row names none
	item    workspaceItem
	fault   error
}

// Find looks a workspace up. That it does not exist, or cannot be read, shows in
// For.
func (w *Workspaces) Find(ctx context.Context, id ids.Workspace) (Found, error) {
	f := Found{id: id}
	found, err := get(ctx, w.db, w.table, workspaceAt(id), &f.item)
	if err != nil {
		return Found{}, fmt.Errorf("looking up the workspace: %w", err)
	}
	f.account = found.account
	if found.exists && found.fault == nil {
		found.fault = f.check()
	}
	if found.fault != nil {
		f.fault = fmt.Errorf("stored workspace %s: %w", id, found.fault)
	}
	return f, nil
}

// check refuses a row without an owner, or of an unknown version.
func (f Found) check() error {
	if f.account == "" {
		return errors.New("no account")
	}
	return f.item.check()
}

// For yields the workspace if the caller may reach it, else ErrNoWorkspace. Only
// to a caller within whose reach it is, a workspace that cannot be read is
// another error.
func (f Found) For(c Caller) (ids.Workspace, error) {
	bound, isBound := c.Bound()
	switch {
	case f.account == "" || f.account != c.account || isBound && bound != f.id:
		return "", ErrNoWorkspace
	case f.fault != nil:
		return "", f.fault
	case f.item.DeletedAt != nil:
		return "", ErrNoWorkspace
	}
	return f.id, nil
}

// LiveIn returns ErrNoWorkspace unless the workspace is live and the account's. It
// is for a caller that acts for the account itself, such as the platform's router.
func (f Found) LiveIn(account ids.Account) error {
	_, err := f.For(Caller{account: account, kind: Management})
	return err
}

// Fault is what is wrong with the row, if anything is. It is for the operator: a
// caller learns from For.
func (f Found) Fault() error { return f.fault }

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
	if fault := cmp.Or(found.fault, account.check()); found.exists && fault != nil {
		return "", fmt.Errorf("stored account %s: %w", c.account, fault)
	}
	if account.DefaultWorkspace == "" {
		return "", ErrNoWorkspace
	}
	return account.DefaultWorkspace, nil
}

type itemUpdater interface {
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// Positions gives out the places of credentials within their workspace.
type Positions struct {
	db    itemUpdater
	table string
}

// NewPositions moves the counters in the access table of that name.
func NewPositions(db itemUpdater, table string) *Positions {
	return &Positions{db: db, table: table}
}

// Claim takes the next position, from 0, for a credential of the provider, and
// decides in the same conditional write that the workspace is live and the
// account's: ErrNoWorkspace if it is not, or if the row is of another version; the
// function may read no more of it. No two claims get one position. After
// any other error a position may be lost; that leaves a gap, which is allowed.
func (p *Positions) Claim(ctx context.Context, account ids.Account, workspace ids.Workspace, provider string) (int64, error) {
	out, err := p.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                &p.table,
		Key:                      workspaceAt(workspace).attributes(),
		UpdateExpression:         aws.String("SET #next.#provider = if_not_exists(#next.#provider, :zero) + :one"),
		ConditionExpression:      aws.String(isLive),
		ExpressionAttributeNames: map[string]string{"#next": "next", "#provider": provider},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":zero": number(0), ":one": number(1), ":account": text(string(account)), ":v": number(itemVersion),
		},
		ReturnValues: types.ReturnValueUpdatedNew,
	})
	if _, failed := calls.ConditionFailed(err); failed {
		return 0, ErrNoWorkspace
	}
	if err != nil {
		return 0, fmt.Errorf("claiming a position: %w", err)
	}
	var updated struct {
		Next map[string]int64 `dynamodbav:"next"`
	}
	if err := attributevalue.UnmarshalMap(out.Attributes, &updated); err != nil || updated.Next[provider] < 1 {
		return 0, fmt.Errorf("stored workspace %s: unreadable counter", workspace)
	}
	return updated.Next[provider] - 1, nil
}
