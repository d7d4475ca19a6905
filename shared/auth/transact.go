package auth

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
)

// transact writes all the items or none of them. The SDK gives each transaction
// a token of its own, so that an attempt whose answer was lost is not applied twice.
func (r *Registry) transact(ctx context.Context, items ...types.TransactWriteItem) error {
	return settled(ctx, func() error {
		_, err := r.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
		return err
	})
}

// update makes one conditional change; it reports whether the condition held.
func (r *Registry) update(ctx context.Context, in *dynamodb.UpdateItemInput) (held bool, err error) {
	in.TableName = &r.table
	err = settled(ctx, func() error {
		_, err := r.db.UpdateItem(ctx, in)
		return err
	})
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return false, nil
	}
	return err == nil, err
}

// settled makes a write again for as long as it meets another one on the same
// item: DynamoDB then applies neither and tells both.
func settled(ctx context.Context, write func() error) error {
	for attempt := 1; ; attempt++ {
		err := write()
		if !inConflict(err) {
			return err
		}
		if calls.Pause(ctx, attempt) != nil {
			return err
		}
	}
}

func inConflict(err error) bool {
	_, plain := errors.AsType[*types.TransactionConflictException](err)
	return plain || calls.WhyCancelled(err) == calls.InConflict
}

// unmet reports whether the transaction was cancelled by the condition of its
// i-th item, and what stood there, where the item asked for that.
func unmet(err error, i int) (found map[string]types.AttributeValue, ok bool) {
	cancelled, isCancelled := errors.AsType[*types.TransactionCanceledException](err)
	if !isCancelled || i >= len(cancelled.CancellationReasons) {
		return nil, false
	}
	reason := cancelled.CancellationReasons[i]
	return reason.Item, aws.ToString(reason.Code) == "ConditionalCheckFailed"
}

// put creates an item that must not be there yet.
func (r *Registry) put(item any) types.TransactWriteItem {
	// The items of this package are structs of strings, numbers and maps of
	// them: encoding one cannot fail, and an empty item would be refused.
	encoded, _ := attributevalue.MarshalMap(item)
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &r.table, Item: encoded,
		ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}}
}

// list enters what is listed under pk into a list.
func (r *Registry) list(at primaryKey) types.TransactWriteItem {
	return r.put(listEntry{primaryKey: at, Version: itemVersion})
}

// unlist takes an entry off a list, whether it is there or not.
func (r *Registry) unlist(at primaryKey) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{TableName: &r.table, Key: at.attributes()}}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
