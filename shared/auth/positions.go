package auth

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/ids"
)

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
// account's: ErrNoWorkspace if it is not. No two claims get one position. After
// any other error a position may be lost; that leaves a gap, which is allowed.
func (p *Positions) Claim(ctx context.Context, account ids.Account, workspace ids.Workspace, provider string) (int64, error) {
	out, err := p.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:        &p.table,
		Key:              workspaceAt(workspace).attributes(),
		UpdateExpression: aws.String("SET #next.#provider = if_not_exists(#next.#provider, :zero) + :one"),
		// The item's existence follows from the account's being equal.
		ConditionExpression: aws.String("#account = :account AND attribute_not_exists(#deleted)"),
		ExpressionAttributeNames: map[string]string{
			"#next": "next", "#provider": provider, "#account": "account", "#deleted": "deleted_at",
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":zero":    &types.AttributeValueMemberN{Value: "0"},
			":one":     &types.AttributeValueMemberN{Value: "1"},
			":account": &types.AttributeValueMemberS{Value: string(account)},
		},
		ReturnValues: types.ReturnValueUpdatedNew,
	})
	var unmet *types.ConditionalCheckFailedException
	if errors.As(err, &unmet) {
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
