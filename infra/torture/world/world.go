// Package world makes fixtures in a running service: an account with workspaces,
// keys and files of its own, beside somebody else's. All of it is written by the
// same packages that the operator's command writes with.
package world

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/torture/ledger"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
)

// Account is an account of a torture.
type Account struct {
	ID ids.Account
	// Workspaces are live; the first is the default.
	Workspaces []ids.Workspace
}

// NewAccount makes an account with as many workspaces.
func NewAccount(ctx context.Context, stack *testkit.Stack, workspaces int) (Account, error) {
	registry := auth.NewRegistry(stack.DynamoDB, stack.Access)
	id, first, err := registry.CreateAccount(ctx, "torture")
	if err != nil {
		return Account{}, fmt.Errorf("making an account: %w", err)
	}
	a := Account{ID: id, Workspaces: []ids.Workspace{first}}
	for len(a.Workspaces) < workspaces {
		w, err := registry.CreateWorkspace(ctx, id, "torture")
		if err != nil {
			return Account{}, fmt.Errorf("making a workspace: %w", err)
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
	n.Account, n.Name = a.ID, "torture"
	token, key, err := auth.NewRegistry(stack.DynamoDB, stack.Access).CreateKey(ctx, n)
	if err != nil {
		return Key{}, fmt.Errorf("making an API key: %w", err)
	}
	return Key{string(token.Reveal()), key.Hash}, nil
}

// Keys makes as many management keys.
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

// uploads bounds how many files are stored side by side.
const uploads = 8

// Files stores as many files, in the account's workspaces by turns, and notes
// them in the ledger.
func (a Account) Files(ctx context.Context, stack *testkit.Stack, l *ledger.Ledger, count int) ([]*ledger.File, error) {
	manager := files.NewManager(stack.S3, stack.Files)
	all := make([]*ledger.File, count)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(uploads)
	for i := range all {
		all[i] = l.File(a.Workspaces[i%len(a.Workspaces)], ids.NewFile())
		group.Go(func() error {
			f := all[i]
			return manager.Upload(ctx, f.Workspace, f.ID, strings.NewReader(f.Content()), "text/plain")
		})
	}
	return all, group.Wait()
}
