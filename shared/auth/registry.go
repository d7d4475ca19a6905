package auth

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/shared/ids"
)

// What a Registry refuses, besides ErrNoWorkspace. Nothing was written then.
var (
	// ErrNoAccount says that there is no such account.
	ErrNoAccount = errors.New("no such account")
	// ErrNoKey says that the account has no such key.
	ErrNoKey = errors.New("no such API key")
	// ErrWorkspaceDeleted says that the workspace is the account's but deleted.
	ErrWorkspaceDeleted = errors.New("the workspace is deleted")
	// ErrInvalid is the kind of error that says what is wrong with a request.
	ErrInvalid = errors.New("invalid")
)

// maxName bounds the names people give, in code points.
const maxName = 255

type registryAPI interface {
	itemGetter
	itemUpdater
	batchGetter
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Registry writes the access table, for the operator's command; no function of
// the service uses it. It keeps what requests rely on: a list and what it lists
// are written together, a default workspace is live, and a deleted workspace
// has no key that lets anybody in.
//
// Whatever is the account's is refused to every other account as if it did not
// exist. A write that meets another one on the same item is made again until it
// is settled or the context ends. After an error that is none of this package's
// own the write may have been applied; listing tells.
type Registry struct {
	db    registryAPI
	table string
	now   func() time.Time
}

// NewRegistry writes to the access table of that name.
func NewRegistry(db registryAPI, table string) *Registry {
	return &Registry{db: db, table: table, now: time.Now}
}

// checkName refuses a name that people could not read back.
func checkName(name string) error {
	if name == "" || !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxName {
		return fmt.Errorf("%w: a name has 1 to %d characters of UTF-8", ErrInvalid, maxName)
	}
	return nil
}

// account reads the account, or returns ErrNoAccount.
func (r *Registry) account(ctx context.Context, id ids.Account) (accountItem, error) {
	var account accountItem
	found, err := get(ctx, r.db, r.table, accountAt(id), &account)
	switch {
	case err != nil:
		return accountItem{}, fmt.Errorf("looking up the account: %w", err)
	case !found.exists:
		return accountItem{}, ErrNoAccount
	case found.fault != nil:
		return accountItem{}, fmt.Errorf("stored account %s: %w", id, found.fault)
	}
	return account, nil
}
