//go:build !lambda

package auth

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// Workspace is a listed workspace.
type Workspace struct {
	ID        ids.Workspace
	Account   ids.Account
	Name      string
	Default   bool // not in a survey
	CreatedAt time.Time
	DeletedAt time.Time        // zero if it is live
	Next      map[string]int64 // the sort_order that a provider's next credential gets
	HasMade   bool             // the row has made or made_bytes, see ForgetMade
	Damage    error            // not nil if the row is damaged: then only ID is certain
}

// Key is an API key without its token. Of a damaged one only Hash, Account, Workspace, Disabled
// and Suspended are certain.
type Key struct {
	Hash      ids.KeyHash
	Account   ids.Account   // "" if the row names none
	Workspace ids.Workspace // "" if it is not bound
	Kind      Kind
	Name      string
	Disabled  bool
	Suspended bool // with its account
	CreatedAt time.Time
	ExpiresAt time.Time // zero if it never expires
	// Damage is set if the stored key is damaged. Such a key is rejected.
	Damage error
}

// Account is a listed account.
type Account struct {
	ID        ids.Account
	Name      string
	Default   ids.Workspace // "" if it has none
	Suspended bool
	CreatedAt time.Time
	// Damage is set if the stored account is damaged. Then only ID and Suspended are certain.
	Damage error
}

// ListWorkspaces lists the account's workspaces, deleted ones included, oldest
// first, or returns ErrNoAccount.
func (r *Registry) ListWorkspaces(ctx context.Context, account ids.Account) ([]Workspace, error) {
	owner, err := r.account(ctx, account)
	if err != nil {
		return nil, err
	}
	rows, err := r.rows(ctx, accountAt(account).PK, workspacePrefix)
	if err != nil {
		return nil, fmt.Errorf("listing workspaces: %w", err)
	}
	workspaces := make([]Workspace, len(rows))
	for i, item := range rows {
		row, damage := decode[workspaceItem](item)
		workspaces[i] = row.workspace(damage)
		workspaces[i].Default = workspaces[i].ID == owner.Default
	}
	slices.SortFunc(workspaces, func(a, b Workspace) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return workspaces, nil
}

// ListWorkspaceIDs lists the ids of the account's workspaces, deleted ones included, or
// returns ErrNoAccount. It reads only the list: damaged rows must not hide workspaces.
func (r *Registry) ListWorkspaceIDs(ctx context.Context, account ids.Account) ([]ids.Workspace, error) {
	entries, err := r.listed(ctx, accountAt(account).PK, workspacePrefix)
	if err != nil {
		return nil, fmt.Errorf("listing workspaces: %w", err)
	}
	if len(entries) == 0 { // every account has had a workspace
		return nil, r.CheckAccount(ctx, account)
	}
	workspaces := make([]ids.Workspace, len(entries))
	for i, entry := range entries {
		workspaces[i] = ids.Workspace(strings.TrimPrefix(entry.SK, workspacePrefix))
	}
	return workspaces, nil
}

// ListKeys lists the account's keys, oldest first. It does not read the account's row: damage to
// that row must not hide them. A key whose row names another account is left out. One whose row
// names none is not, because somebody may put the row right.
func (r *Registry) ListKeys(ctx context.Context, account ids.Account) ([]Key, error) {
	keys, err := r.keys(ctx, accountAt(account).PK)
	if err != nil {
		return nil, fmt.Errorf("listing keys: %w", err)
	}
	return slices.DeleteFunc(keys, func(k Key) bool { return k.Account != account && k.Account != "" }), nil
}

// CountKeys counts the account's list of keys, and reads no row.
func (r *Registry) CountKeys(ctx context.Context, account ids.Account) (int, error) {
	entries, err := r.listed(ctx, accountAt(account).PK, keyPrefix)
	if err != nil {
		return 0, fmt.Errorf("counting keys: %w", err)
	}
	return len(entries), nil
}

// ListBoundKeys lists the keys that are bound to the workspace. It includes those in its list
// whose row is damaged; it leaves out those whose row names another workspace.
func (r *Registry) ListBoundKeys(ctx context.Context, workspace ids.Workspace) ([]Key, error) {
	keys, err := r.keys(ctx, workspaceAt(workspace).PK)
	if err != nil {
		return nil, fmt.Errorf("listing the keys of a workspace: %w", err)
	}
	return slices.DeleteFunc(keys, func(k Key) bool {
		isUnknown := k.Damage != nil && k.Workspace == ""
		return k.Workspace != workspace && !isUnknown
	}), nil
}

// keys reads the keys that are listed under pk.
func (r *Registry) keys(ctx context.Context, pk string) ([]Key, error) {
	rows, err := r.rows(ctx, pk, keyPrefix)
	if err != nil {
		return nil, err
	}
	keys := make([]Key, len(rows))
	for i, item := range rows {
		row, damage := decode[keyItem](item)
		keys[i] = row.key(damage)
	}
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Hash, b.Hash))
	})
	return keys, nil
}

// listed reads the primary keys of a list's entries, even of damaged ones.
func (r *Registry) listed(ctx context.Context, pk, prefix string) ([]primaryKey, error) {
	pages := dynamodb.NewQueryPaginator(r.db, &dynamodb.QueryInput{
		TableName: &r.table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("pk = :pk AND begins_with(sk, :prefix)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":pk": calls.Text(pk), ":prefix": calls.Text(prefix)},
	})
	var entries []primaryKey
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			entries = append(entries, primaryKeyOf(item))
		}
	}
	return entries, nil
}

// rows reads the rows that a list names.
func (r *Registry) rows(ctx context.Context, pk, prefix string) ([]map[string]types.AttributeValue, error) {
	entries, err := r.listed(ctx, pk, prefix)
	if err != nil {
		return nil, err
	}
	var rows []map[string]types.AttributeValue
	for part := range slices.Chunk(entries, batchLimit) {
		var keys []map[string]types.AttributeValue
		for _, entry := range part {
			keys = append(keys, entry.row().attributes())
		}
		items, err := batchGet(ctx, r.db, r.table, keys)
		if err != nil {
			return nil, err
		}
		rows = append(rows, items...)
	}
	return rows, nil
}

// key converts a row to a Key. damage is the error of decoding the row.
func (k *keyItem) key(damage error) Key {
	key := Key{
		Hash: ids.KeyHash(strings.TrimPrefix(k.PK, keyPrefix)), Damage: damage, Account: k.Account, Workspace: k.Workspace, Kind: k.Kind, Name: k.Name,
		Disabled: aws.ToBool(k.Disabled), Suspended: k.Suspended,
		CreatedAt: time.Unix(k.CreatedAt, 0).UTC(),
	}
	if k.ExpiresAt != 0 {
		key.ExpiresAt = time.Unix(k.ExpiresAt, 0).UTC()
	}
	return key
}

func (a *accountItem) account(damage error) Account {
	return Account{
		ID: ids.Account(strings.TrimPrefix(a.PK, accountPrefix)), Name: a.Name, Default: a.DefaultWorkspace, Suspended: a.Suspended,
		CreatedAt: time.Unix(a.CreatedAt, 0).UTC(), Damage: damage,
	}
}

func (w *workspaceItem) workspace(damage error) Workspace {
	workspace := Workspace{
		ID: ids.Workspace(strings.TrimPrefix(w.PK, workspacePrefix)), Account: w.Account, Name: w.Name, CreatedAt: time.Unix(w.CreatedAt, 0).UTC(),
		Next: w.Next, HasMade: w.Made != nil || w.MadeBytes != nil, Damage: damage,
	}
	if w.DeletedAt != nil {
		workspace.DeletedAt = time.Unix(*w.DeletedAt, 0).UTC()
	}
	return workspace
}
