package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// ErrFull means that a workspace has no room for another credential. A minute later the
// room of deleted credentials is free again, and that of claims that were not stored.
var ErrFull = errors.New("the workspace is full")

// Room is an amount of credentials and their bytes.
type Room struct{ Credentials, Bytes int64 }

// Need is the room that a credential takes in its workspace.
type Need struct {
	Provider string
	Bytes    int64
	// Request is the same for copies of a request if only one can be stored; "" if each
	// can.
	Request string
}

type itemUpdater interface {
	itemGetter
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// Positions gives out the places of credentials within their workspace.
type Positions struct {
	db    itemUpdater
	table string
	count func(context.Context, ids.Workspace) (credentials, bytes int64, err error)
	now   func() time.Time
}

// NewPositions moves the counters in the access table. count returns how much a
// workspace holds.
func NewPositions(db itemUpdater, table string, count func(context.Context, ids.Workspace) (credentials, bytes int64, err error)) *Positions {
	return &Positions{db: db, table: table, count: count, now: time.Now}
}

// Claim takes the next position, from 0, for a credential of the provider, and its
// share of the room. The same conditional write decides that the workspace is live and
// the account's, or ErrNoWorkspace; and that there is room, or ErrFull. To its own
// account a row that cannot be read is another error. No two claims get one position.
// After any other error a position may be lost; that leaves a gap, which is allowed.
//
// Nothing is given back. A full workspace is counted instead, see makeRoom. The copies
// of a request, sent at the same time, share the last place in a workspace.
func (p *Positions) Claim(ctx context.Context, account ids.Account, workspace ids.Workspace, need Need, room Room) (int64, error) {
	position, taken, err := p.take(ctx, account, workspace, need, room)
	if taken || err != nil {
		return position, err
	}
	if err := p.makeRoom(ctx, account, workspace, need, room); err != nil {
		return 0, err
	}
	position, taken, err = p.take(ctx, account, workspace, need, room)
	if !taken && err == nil {
		err = ErrFull
	}
	return position, err
}

// take makes a claim, unless its condition does not hold.
func (p *Positions) take(ctx context.Context, account ids.Account, workspace ids.Workspace, need Need, room Room) (position int64, taken bool, err error) {
	now := p.now()
	stored, taken, err := p.update(ctx, workspace,
		"SET #next.#provider = if_not_exists(#next.#provider, :zero) + :one, used = used + :one, bytes = bytes + :size, claimed_at = :now, claimed_by = :request",
		isLive+" AND (used < :most AND bytes <= :room OR claimed_by = :request AND claimed_at > :settled)",
		map[string]string{"#next": "next", "#provider": need.Provider},
		map[string]types.AttributeValue{
			":account": text(string(account)), ":v": number(itemVersion), ":now": number(now.UnixNano()), ":settled": number(now.Add(-settling).UnixNano()),
			":request": text(cmp.Or(need.Request, rand.Text())),
			":zero":    number(0), ":one": number(1), ":size": number(need.Bytes),
			":most": number(room.Credentials), ":room": number(room.Bytes - need.Bytes),
		})
	if !taken || err != nil {
		return 0, false, err
	}
	var updated struct {
		Next map[string]int64 `dynamodbav:"next"`
	}
	if err := attributevalue.UnmarshalMap(stored, &updated); err != nil || updated.Next[need.Provider] < 1 {
		return 0, false, fmt.Errorf("stored workspace %s: unreadable counter", workspace)
	}
	return updated.Next[need.Provider] - 1, true, nil
}

// settling is how long a claim may take to be stored or to fail: longer than a
// request lives, and than clocks differ. A full workspace is counted no more often.
const settling = time.Minute

// makeRoom finds out why a claim was refused. If the workspace is full, and the last
// claim is over a minute old, it counts the stored credentials and begins again from
// there: failed creates lock no workspace. A claim made during the count prevails. One
// request a minute counts. A workspace that was never counted is counted at once: none of
// its claims could show how much it holds.
func (p *Positions) makeRoom(ctx context.Context, account ids.Account, workspace ids.Workspace, need Need, room Room) error {
	found, err := NewWorkspaces(p.db, p.table).Find(ctx, workspace)
	if err != nil {
		return err
	}
	if _, err := found.For(Caller{account: account, kind: Management}); err != nil {
		return err
	}
	row, now := found.item, p.now().UnixNano()
	unchanged, values := "attribute_not_exists(used) OR attribute_not_exists(bytes)", map[string]types.AttributeValue{}
	if row.Used != nil && row.Bytes != nil {
		if *row.Used < room.Credentials && *row.Bytes <= room.Bytes-need.Bytes {
			return nil // by now
		}
		if now-max(row.ClaimedAt, row.CountedAt) < int64(settling) {
			return ErrFull
		}
		unchanged = "used = :seen AND counted_at = :now"
		values = map[string]types.AttributeValue{":seen": number(*row.Used), ":now": number(now)}
		before := maps.Clone(values)
		before[":before"] = number(row.CountedAt)
		// An attempt of the SDK's that was applied, and its response lost, has set it.
		_, first, err := p.update(ctx, workspace, "SET counted_at = :now",
			"used = :seen AND (attribute_not_exists(counted_at) OR counted_at = :before OR counted_at = :now)", nil, before)
		if err == nil && !first {
			err = ErrFull
		}
		if err != nil {
			return err
		}
	}
	credentials, bytes, err := p.count(ctx, workspace)
	if err != nil {
		return err
	}
	values[":used"], values[":bytes"] = number(credentials), number(bytes)
	_, _, err = p.update(ctx, workspace, "SET used = :used, bytes = :bytes", unchanged, nil, values)
	return err
}

// update changes the workspace's row and returns the new attributes, unless the
// condition does not hold.
func (p *Positions) update(ctx context.Context, workspace ids.Workspace, change, condition string,
	names map[string]string, values map[string]types.AttributeValue,
) (stored map[string]types.AttributeValue, held bool, err error) {
	out, err := p.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &p.table, Key: workspaceAt(workspace).attributes(),
		UpdateExpression: &change, ConditionExpression: aws.String(condition),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		ReturnValues: types.ReturnValueUpdatedNew,
	})
	if _, failed := calls.ConditionFailed(err); failed {
		return nil, false, nil
	}
	if err == nil && out.Attributes == nil {
		err = errors.New("the response has no attributes")
	}
	if err != nil {
		return nil, false, fmt.Errorf("claiming a position: %w", err)
	}
	return out.Attributes, true, nil
}
