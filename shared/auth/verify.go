package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/ids"
)

type itemGetter interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
}

// Verifier looks API keys up.
type Verifier struct {
	db    itemGetter
	table string
	now   func() time.Time
}

// NewVerifier reads keys from the access table of that name.
func NewVerifier(db itemGetter, table string) *Verifier {
	return &Verifier{db: db, table: table, now: time.Now}
}

// Verify lets a key in or returns a *Rejection; any other error means that the
// table could not be asked. It has no effect.
func (v *Verifier) Verify(ctx context.Context, hash KeyHash) (Caller, error) {
	var key keyItem
	found, err := get(ctx, v.db, v.table, keyAt(hash), &key)
	if err != nil {
		return Caller{}, fmt.Errorf("looking up the key: %w", err)
	}
	if !found.exists {
		return Caller{}, &Rejection{Reason: UnknownKey}
	}
	if found.fault == nil {
		found.fault = key.check()
	}
	if found.fault != nil {
		return Caller{}, &Rejection{Reason: UnknownKey, Fault: fmt.Errorf("stored key %s: %w", hash.Short(), found.fault)}
	}
	switch {
	case key.Disabled:
		return Caller{}, &Rejection{Reason: Disabled}
	case key.expired(v.now()):
		return Caller{}, &Rejection{Reason: Expired}
	}
	return Caller{account: key.Account, workspace: key.Workspace, key: hash, kind: key.Kind}, nil
}

// lookup tells an absent item from one that is there but cannot be read.
type lookup struct {
	exists  bool
	account ids.Account // that the item names, whatever else it holds
	fault   error
}

// get reads one item, strongly consistent, into the struct behind into.
func get(ctx context.Context, db itemGetter, table string, at primaryKey, into any) (lookup, error) {
	out, err := db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &table,
		Key:            at.attributes(),
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return lookup{}, err
	}
	if out.Item == nil {
		return lookup{}, nil
	}
	if !at.isOf(out.Item) {
		return lookup{}, errors.New("answered with another item")
	}
	found := lookup{exists: true, fault: decode(out.Item, into)}
	if account, ok := out.Item["account"].(*types.AttributeValueMemberS); ok {
		found.account = ids.Account(account.Value)
	}
	return found, nil
}
