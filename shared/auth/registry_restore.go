package auth

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/ids"
)

// The repairs of a restored table. Each is one conditional write, made again
// without harm: where the table needs it no more, nothing is written and the
// error is nil.

// RaiseCounter makes sure that the workspace's next credential of the provider
// gets at least this sort_order.
func (r *Registry) RaiseCounter(ctx context.Context, workspace ids.Workspace, provider string, next int64) error {
	_, err := r.update(ctx, &dynamodb.UpdateItemInput{
		Key:                      workspaceAt(workspace).attributes(),
		UpdateExpression:         aws.String("SET #next.#provider = :next"),
		ConditionExpression:      aws.String("attribute_exists(pk) AND (attribute_not_exists(#next.#provider) OR #next.#provider < :next)"),
		ExpressionAttributeNames: map[string]string{"#next": "next", "#provider": provider},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":next": &types.AttributeValueMemberN{Value: strconv.FormatInt(next, 10)},
		},
	})
	if err != nil {
		return fmt.Errorf("raising a counter: %w", err)
	}
	return nil
}

// ClearDefault leaves the account without a default workspace where it is this one.
func (r *Registry) ClearDefault(ctx context.Context, account ids.Account, workspace ids.Workspace) error {
	return r.repair(ctx, "clearing a default workspace", r.withoutDefault(account, workspace, true))
}

// Relist adds a missing list entry. A key is disabled in the same transaction: a
// key that is not in its lists may be the half of a deletion.
func (r *Registry) Relist(ctx context.Context, missing Place) error {
	row := missing.row()
	there := types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &r.table, Key: row.attributes(), ConditionExpression: aws.String("attribute_exists(pk)"),
	}}
	if row.SK == keySort {
		there = types.TransactWriteItem{Update: &types.Update{
			TableName: &r.table, Key: row.attributes(), ConditionExpression: aws.String("attribute_exists(pk)"),
			UpdateExpression:          aws.String("SET disabled = :true"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":true": &types.AttributeValueMemberBOOL{Value: true}},
		}}
	}
	return r.repair(ctx, "adding a list entry", r.list(missing.primaryKey), there)
}

// Unlist removes a list entry whose row is not there or belongs elsewhere.
func (r *Registry) Unlist(ctx context.Context, stray Place) error {
	attribute, owner, _ := strings.Cut(stray.PK, "#")
	return r.repair(ctx, "removing a list entry", r.unlist(stray.primaryKey),
		types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &r.table, Key: stray.row().attributes(),
			ConditionExpression:       aws.String("attribute_not_exists(#owner) OR #owner <> :owner"),
			ExpressionAttributeNames:  map[string]string{"#owner": attribute},
			ExpressionAttributeValues: map[string]types.AttributeValue{":owner": text(owner)},
		}})
}

// repair makes the transaction, unless one of its conditions does not hold.
func (r *Registry) repair(ctx context.Context, doing string, items ...types.TransactWriteItem) error {
	err := r.transact(ctx, items...)
	for i := range items {
		if _, ok := unmet(err, i); ok {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
