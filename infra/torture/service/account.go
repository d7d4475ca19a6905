package service

import (
	"context"
	"fmt"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// Account is an account of a test.
type Account struct {
	ID ids.Account
	// Workspaces are live; the first is the default.
	Workspaces []ids.Workspace
}

// NewAccount makes an account with that many workspaces.
func NewAccount(ctx context.Context, stack *testkit.Stack, workspaces int) (Account, error) {
	registry := auth.NewRegistry(stack.DynamoDB, stack.Access)
	id, first, err := registry.CreateAccount(ctx, "test")
	if err != nil {
		return Account{}, fmt.Errorf("creating an account: %w", err)
	}
	a := Account{ID: id, Workspaces: []ids.Workspace{first}}
	for len(a.Workspaces) < workspaces {
		w, err := registry.CreateWorkspace(ctx, id, "test")
		if err != nil {
			return Account{}, fmt.Errorf("creating a workspace: %w", err)
		}
		a.Workspaces = append(a.Workspaces, w)
	}
	return a, nil
}

// Key is an API key with its token.
type Key struct {
	Token string
	Hash  auth.KeyHash
}

// Key makes an API key of the account.
func (a Account) Key(ctx context.Context, stack *testkit.Stack, n auth.NewKey) (Key, error) {
	n.Account, n.Name = a.ID, "test"
	token, key, err := auth.NewRegistry(stack.DynamoDB, stack.Access).CreateKey(ctx, n)
	if err != nil {
		return Key{}, fmt.Errorf("creating an API key: %w", err)
	}
	return Key{string(token.Reveal()), key.Hash}, nil
}

// Keys makes that many management keys.
func (a Account) Keys(ctx context.Context, stack *testkit.Stack, count int) ([]Key, error) {
	all := make([]Key, count)
	for i := range all {
		var err error
		if all[i], err = a.Key(ctx, stack, auth.NewKey{Kind: auth.Management}); err != nil {
			return nil, err
		}
	}
	return all, nil
}
