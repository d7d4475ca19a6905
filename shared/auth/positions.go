package auth

import (
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

// Position is what a new credential gets from its workspace.
type Position struct {
	SortOrder int64
	// Credentials is how many credentials the workspace ever gave a position, this one included,
	// and Bytes their bytes. Both only grow, so the stored credentials never take more.
	Credentials, Bytes int64
}

type itemUpdater interface {
	calls.ItemGetter
	calls.ItemUpdater
}

// Positions gives a new credential its sort_order and counts it. One conditional write does
// both. It fails unless the workspace is live and the account's, so no request can count in
// the workspace of another account, and no two credentials get the same sort_order. A position
// that is not used leaves a gap, which is allowed.
type Positions struct {
	db                 itemUpdater
	table              string
	credentials, bytes int64
}

// NewPositions moves the counters in the access table. A row that has not counted its
// credentials and bytes, as after a restore, counts from these: the largest bound that any
// deployment allows.
func NewPositions(db itemUpdater, table string, credentials, bytes int64) *Positions {
	return &Positions{db: db, table: table, credentials: credentials, bytes: bytes}
}

// Next takes the provider's next position, from 0, for a credential of that size. It returns
// ErrNoWorkspace if the workspace is not live or not the account's. If the row is damaged, its
// own account gets a *calls.Damage, and another account an error that is both. After any other
// error a position may be taken.
func (p *Positions) Next(ctx context.Context, account ids.Account, workspace ids.Workspace, provider string, bytes int64) (Position, error) {
	out, err := p.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &p.table, Key: workspaceAt(workspace).attributes(),
		UpdateExpression: aws.String("SET #next.#provider = if_not_exists(#next.#provider, :zero) + :one, " +
			"made = if_not_exists(made, :made) + :one, made_bytes = if_not_exists(made_bytes, :made_bytes) + :bytes"),
		ConditionExpression:      aws.String(isLive),
		ExpressionAttributeNames: map[string]string{"#next": "next", "#provider": provider},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":account": calls.Text(string(account)), ":v": calls.Number(itemVersion), ":zero": calls.Number(0), ":one": calls.Number(1),
			":made": calls.Number(p.credentials), ":made_bytes": calls.Number(p.bytes), ":bytes": calls.Number(bytes),
		},
		ReturnValues: types.ReturnValueUpdatedNew,
	})
	// An item that comes with the failed condition would need a wider policy, so it is read.
	// A ValidationException means that the row has no map of counters, or that a counter is not
	// a number.
	if _, failed := calls.ConditionFailed(err); failed || calls.Code(err) == "ValidationException" {
		if why := p.whyNot(ctx, account, workspace); why != nil {
			return Position{}, why
		}
	}
	if err != nil {
		return Position{}, fmt.Errorf("taking a position: %w", err)
	}
	var row workspaceItem
	if err := attributevalue.UnmarshalMap(out.Attributes, &row); err != nil || row.Next[provider] < 1 || row.Made == nil || row.MadeBytes == nil {
		return Position{}, workspaceAt(workspace).damage(errNoCounter)
	}
	return Position{row.Next[provider] - 1, *row.Made, *row.MadeBytes}, nil
}

// whyNot returns the reason why the workspace gives out no position.
func (p *Positions) whyNot(ctx context.Context, account ids.Account, workspace ids.Workspace) error {
	found, err := NewWorkspaces(p.db, p.table).Find(ctx, workspace)
	if err != nil {
		return err
	}
	switch refusal := found.check(account); {
	case errors.Is(refusal, ErrNoWorkspace) && found.damage != nil:
		return fmt.Errorf("%w: %w", refusal, found.damage)
	case refusal == nil && found.row.Next == nil:
		return workspaceAt(workspace).damage(errNoCounter)
	default:
		return refusal
	}
}

var errNoCounter = errors.New("no counters")
