//go:build !lambda

package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// The Registry's refusals, besides ErrNoWorkspace. After a refusal nothing was written.
var (
	ErrNoAccount = errors.New("no such account")
	// ErrNoKey means that the account has no such key.
	ErrNoKey = errors.New("no such API key")
	// ErrWorkspaceDeleted means that the workspace belongs to the account but is
	// deleted.
	ErrWorkspaceDeleted = errors.New("the workspace is deleted")
	ErrSuspended        = errors.New("the account is suspended")
	// ErrInvalid is wrapped by errors that describe an invalid request.
	ErrInvalid = errors.New("invalid")
)

// maxName is the length of the longest name, in code points.
const maxName = 255

type registryAPI interface {
	itemUpdater
	calls.BatchGetter
	dynamodb.QueryAPIClient
	dynamodb.ScanAPIClient
	calls.Transactor
}

// Registry writes the access table, for the operator's command; no function of
// the service uses it. Requests rely on it: a row and its list entries are written
// together, a default workspace is live, and a deleted workspace has no usable key.
//
// For one account, the workspaces and keys of another do not exist. A write that
// conflicts with another write to the same item is repeated until it succeeds or the
// context ends. After an error that this package does not declare, the write may have
// been applied; a list shows whether it was.
type Registry struct {
	db    registryAPI
	table string
	now   func() time.Time
}

// NewRegistry writes to the access table.
func NewRegistry(db registryAPI, table string) *Registry {
	return &Registry{db: db, table: table, now: time.Now}
}

// checkName refuses an empty, overlong or malformed name.
func checkName(name string) error {
	if name == "" || !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxName {
		return fmt.Errorf("%w: a name has 1 to %d characters of UTF-8", ErrInvalid, maxName)
	}
	return nil
}

// account reads a sound account, or returns ErrNoAccount.
func (r *Registry) account(ctx context.Context, id ids.Account) (Account, error) {
	found, err := r.FindAccount(ctx, id)
	return found, cmp.Or(err, found.Damage)
}

// firstWorkspace is the name of an account's first workspace.
const firstWorkspace = "default"

// CreateAccount stores an account and its default workspace in one transaction. If
// it returns ids with an error, both may be stored.
func (r *Registry) CreateAccount(ctx context.Context, name string) (ids.Account, ids.Workspace, error) {
	if err := checkName(name); err != nil {
		return "", "", err
	}
	account, workspace := ids.New[ids.Account](), ids.New[ids.Workspace]()
	err := r.transact(ctx, "creating an account",
		r.put(accountItem{header: newHeader(accountAt(account)), Name: name, DefaultWorkspace: workspace, CreatedAt: r.now().Unix()}),
		r.put(r.newWorkspace(account, workspace, firstWorkspace)),
		r.addEntry(workspaceEntry(account, workspace)),
	)
	return account, workspace, err
}

// FindAccount looks up an account, also a damaged one, or returns ErrNoAccount.
func (r *Registry) FindAccount(ctx context.Context, id ids.Account) (Account, error) {
	found, err := get[accountItem](ctx, r.db, r.table, accountAt(id))
	switch {
	case err != nil:
		return Account{}, fmt.Errorf("looking up the account: %w", err)
	case !found.exists:
		return Account{}, ErrNoAccount
	}
	return found.row.account(found.damage), nil
}

// CheckAccount returns ErrNoAccount if there is no such account.
func (r *Registry) CheckAccount(ctx context.Context, id ids.Account) error {
	_, err := r.account(ctx, id)
	return err
}

// write is one write of a transaction, with its refusal.
type write struct {
	types.TransactWriteItem
	// refusal is the error if the write's condition does not hold for the stored row, which is
	// nil if there is none. A write without a refusal has no condition that can fail.
	refusal func(row map[string]types.AttributeValue) error
}

// refusing returns the write with this refusal.
func (w write) refusing(err error) write {
	w.refusal = func(map[string]types.AttributeValue) error { return err }
	return w
}

// inputOf is the transaction of these writes.
func inputOf(writes []write) *dynamodb.TransactWriteItemsInput {
	in := new(dynamodb.TransactWriteItemsInput)
	for _, w := range writes {
		in.TransactItems = append(in.TransactItems, w.TransactWriteItem)
	}
	return in
}

// refusalOf returns the refusal of the first write whose condition does not hold. It leaves
// any other error as it is.
func refusalOf(err error, writes []write) error {
	for i, w := range writes {
		if row, unmet := calls.Unmet(err, i); unmet && w.refusal != nil {
			return w.refusal(row)
		}
	}
	return err
}

// transact makes all the writes or none. All attempts have the same token, so an attempt
// after a lost response does not write again.
func (r *Registry) transact(ctx context.Context, doing string, writes ...write) error {
	in := inputOf(writes)
	in.ClientRequestToken = aws.String(rand.Text())
	return refusalOf(retryConflicts(ctx, doing, func() error {
		_, err := r.db.TransactWriteItems(ctx, in)
		return err
	}), writes)
}

// update makes one change by itself, or returns its refusal.
func (r *Registry) update(ctx context.Context, doing string, w write) error {
	err := retryConflicts(ctx, doing, func() error {
		_, err := r.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: w.Update.TableName, Key: w.Update.Key, UpdateExpression: w.Update.UpdateExpression, ConditionExpression: w.Update.ConditionExpression,
			ExpressionAttributeNames: w.Update.ExpressionAttributeNames, ExpressionAttributeValues: w.Update.ExpressionAttributeValues,
		})
		return err
	})
	if row, failed := calls.ConditionFailed(err); failed {
		return w.refusal(row)
	}
	return err
}

// retryConflicts repeats a write while it conflicts with another write to the same item:
// DynamoDB may then apply neither.
func retryConflicts(ctx context.Context, doing string, write func() error) error {
	for attempt := 1; ; attempt++ {
		err := write()
		if err == nil {
			return nil
		}
		if !inConflict(err) || calls.Pause(ctx, attempt) != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
	}
}

func inConflict(err error) bool {
	_, plain := errors.AsType[*types.TransactionConflictException](err)
	return plain || calls.WhyCancelled(err) == calls.InConflict
}

// put creates an item that must not exist yet.
func (r *Registry) put(item any) write {
	return write{TransactWriteItem: types.TransactWriteItem{Put: &types.Put{
		TableName: &r.table, Item: calls.Encode(item),
		ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}}}
}

// values are the values of an expression, by their names in it.
type values = map[string]types.AttributeValue

// change changes the row, if the condition holds.
func (r *Registry) change(at primaryKey, change, condition string, v values) write {
	return write{TransactWriteItem: types.TransactWriteItem{Update: &types.Update{
		TableName: &r.table, Key: at.attributes(), UpdateExpression: &change, ConditionExpression: &condition, ExpressionAttributeValues: v,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}}
}

// check changes nothing. The transaction fails unless the condition holds.
func (r *Registry) check(at primaryKey, condition string, v values) write {
	return write{TransactWriteItem: types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &r.table, Key: at.attributes(), ConditionExpression: &condition, ExpressionAttributeValues: v,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}}
}

// addEntry writes a list entry that must not exist yet.
func (r *Registry) addEntry(at primaryKey) write {
	return r.put(newHeader(at))
}

// removeEntry removes a list entry, if it is there.
func (r *Registry) removeEntry(at primaryKey) write {
	return write{TransactWriteItem: types.TransactWriteItem{Delete: &types.Delete{TableName: &r.table, Key: at.attributes()}}}
}

// workspaceEntry is the workspace's entry in the list of its account.
func workspaceEntry(account ids.Account, id ids.Workspace) primaryKey {
	return primaryKey{accountAt(account).PK, workspaceAt(id).PK}
}

// entries are the key's list entries: one of its account and, if it is bound, one of its
// workspace.
func (k *keyItem) entries() []primaryKey {
	entries := []primaryKey{{accountAt(k.Account).PK, k.PK}}
	if k.Workspace != "" {
		entries = append(entries, primaryKey{workspaceAt(k.Workspace).PK, k.PK})
	}
	return entries
}
