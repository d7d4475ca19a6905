package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// ErrFull means that a workspace has no room for another credential. A minute later the
// room of deleted credentials is free again, and so is the room of claims with an unknown
// outcome.
var ErrFull = errors.New("the workspace is full")

// Room is an amount of credentials and their bytes.
type Room struct{ Credentials, Bytes int64 }

// Need is the room that a credential takes in its workspace.
type Need struct {
	Provider string
	Bytes    int64
	// Request names a request and its copies, with the same content, if only one of them
	// can be stored. It is "" if each can.
	Request string
}

// Claim is a credential's place in its workspace.
type Claim struct {
	Position  int64
	workspace ids.Workspace
	bytes     int64
	// epoch is 0 if copies of a request share the room. Return then does nothing.
	epoch int64
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
// share of the room. The same conditional write fails with ErrNoWorkspace if the workspace
// is not live or not the account's, and with ErrFull if it has no room. If the row cannot
// be read, its own account gets another error. No two claims get the same position. After
// any other error a position may be lost; that leaves a gap, which is allowed. The copies
// of a request, sent at the same time, share the last place in a workspace.
//
// A claim that is not stored is given back with Return. If that fails, a full workspace
// is counted, see makeRoom.
func (p *Positions) Claim(ctx context.Context, account ids.Account, workspace ids.Workspace, need Need, room Room) (Claim, error) {
	// A request without copies gets a name too: an earlier attempt of the SDK may have made
	// the last claim and lost the response.
	need.Request = cmp.Or(need.Request, rand.Text())
	claim, taken, err := p.take(ctx, account, workspace, need, room)
	if taken || err != nil {
		return claim, err
	}
	row, err := p.read(ctx, account, workspace)
	if err != nil {
		return Claim{}, err
	}
	if need.Request == row.ClaimedBy {
		claim, taken, err = p.share(ctx, account, workspace, need, room)
		if !taken && err == nil { // the claim was given back since
			claim, taken, err = p.take(ctx, account, workspace, need, room)
		}
		if taken || err != nil {
			return claim, err
		}
	}
	if err := p.makeRoom(ctx, workspace, row, need, room); err != nil {
		return Claim{}, err
	}
	claim, taken, err = p.take(ctx, account, workspace, need, room)
	if !taken && err == nil {
		claim, taken, err = p.share(ctx, account, workspace, need, room)
	}
	if !taken && err == nil {
		err = ErrFull
	}
	return claim, err
}

// Return gives back the room of a claim that is not stored and never will be. It returns
// nil also if the workspace was counted since, or if copies of a request share its last
// place. It sends one attempt: a second one would give back twice.
func (p *Positions) Return(ctx context.Context, claim Claim) error {
	if claim.epoch == 0 {
		return nil
	}
	_, _, err := p.update(ctx, claim.workspace, "SET used = used + :less, bytes = bytes + :smaller", "epoch = :epoch AND attribute_exists(used)", nil,
		map[string]types.AttributeValue{":less": calls.Number(-1), ":smaller": calls.Number(-claim.bytes), ":epoch": calls.Number(claim.epoch)},
		func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	return err
}

const (
	hasRoom   = "used < :most AND bytes <= :room"
	nextEpoch = "epoch = if_not_exists(epoch, :one) + :one"
)

// take makes a claim if there is room.
func (p *Positions) take(ctx context.Context, account ids.Account, workspace ids.Workspace, need Need, room Room) (claim Claim, taken bool, err error) {
	return p.next(ctx, account, workspace, need, room, map[string]types.AttributeValue{":now": calls.Number(p.now().UnixNano()), ":size": calls.Number(need.Bytes)},
		", used = used + :one, bytes = bytes + :size, claimed_at = :now, claimed_by = :request, epoch = if_not_exists(epoch, :one)", hasRoom)
}

// share takes a position without room in a full workspace, for a copy of the request that
// made the last claim: only one of them is stored. It leaves claimed_at as it is: the claim
// settles on time even if copies keep coming, and the copies settle with it. No claim of
// this epoch is given back.
func (p *Positions) share(ctx context.Context, account ids.Account, workspace ids.Workspace, need Need, room Room) (claim Claim, taken bool, err error) {
	claim, taken, err = p.next(ctx, account, workspace, need, room,
		map[string]types.AttributeValue{":recent": calls.Number(p.now().Add(requestLife - settling).UnixNano())},
		", "+nextEpoch, "claimed_by = :request AND claimed_at > :recent AND NOT ("+hasRoom+")")
	claim.epoch = 0
	return claim, taken, err
}

// next takes the provider's next position and makes the other changes. The workspace must
// be live, belong to the account and meet the condition.
func (p *Positions) next(ctx context.Context, account ids.Account, workspace ids.Workspace, need Need, room Room,
	values map[string]types.AttributeValue, changes, condition string,
) (claim Claim, taken bool, err error) {
	values[":account"], values[":v"] = calls.Text(string(account)), calls.Number(itemVersion)
	values[":zero"], values[":one"] = calls.Number(0), calls.Number(1)
	values[":request"], values[":most"], values[":room"] = calls.Text(need.Request), calls.Number(room.Credentials), calls.Number(room.Bytes-need.Bytes)
	stored, taken, err := p.update(ctx, workspace,
		"SET #next.#provider = if_not_exists(#next.#provider, :zero) + :one"+changes, isLive+" AND "+condition,
		map[string]string{"#next": "next", "#provider": need.Provider}, values)
	if err != nil && calls.Code(err) == "ValidationException" { // the row has no counters
		if _, fault := p.read(ctx, account, workspace); fault != nil {
			err = fault
		}
	}
	if !taken || err != nil {
		return Claim{}, false, err
	}
	var updated struct {
		Next  map[string]int64 `dynamodbav:"next"`
		Epoch int64            `dynamodbav:"epoch"`
	}
	if err := attributevalue.UnmarshalMap(stored, &updated); err != nil || updated.Next[need.Provider] < 1 {
		return Claim{}, false, fmt.Errorf("stored workspace %s: unreadable counter", workspace)
	}
	return Claim{updated.Next[need.Provider] - 1, workspace, need.Bytes, updated.Epoch}, true, nil
}

// read returns the workspace's row, or the reason why nothing can be claimed in it.
func (p *Positions) read(ctx context.Context, account ids.Account, workspace ids.Workspace) (workspaceItem, error) {
	found, err := NewWorkspaces(p.db, p.table).Find(ctx, workspace)
	if err == nil {
		_, err = found.For(Caller{account: account, kind: Management})
	}
	if err == nil && found.item.Next == nil {
		err = fmt.Errorf("stored workspace %s: %w: no counters", workspace, ErrUnreadable)
	}
	return found.item, err
}

const (
	// settling is the longest time until a claim and the copies that share it are stored or
	// have failed. A full workspace is counted at most once in that time. A client that
	// follows infra/openapi.yaml sends its last repeat after half of that time.
	settling = time.Minute
	// requestLife is more than any request takes plus the largest difference of clocks.
	requestLife = 15 * time.Second
)

// makeRoom counts the stored credentials of a full workspace if its last claim is over a
// minute old. It stores the result, so failed creates do not lock a workspace. A claim made
// during the count prevails. One request a minute counts. If the row has no count, makeRoom
// counts at once: nothing else shows how much the workspace holds.
func (p *Positions) makeRoom(ctx context.Context, workspace ids.Workspace, row workspaceItem, need Need, room Room) error {
	now := p.now().UnixNano()
	unchanged, values := "attribute_not_exists(used) OR attribute_not_exists(bytes)", map[string]types.AttributeValue{}
	if row.Used != nil && row.Bytes != nil {
		if *row.Used < room.Credentials && *row.Bytes <= room.Bytes-need.Bytes {
			return nil // there is room now
		}
		if now-max(row.ClaimedAt, row.CountedAt) < int64(settling) {
			return ErrFull
		}
		// The SDK repeats an update if its response was lost. Each claim changes
		// claimed_at, so the second attempt finds any that came after the first.
		unchanged = "used = :seen AND counted_at = :now AND (attribute_not_exists(claimed_at) OR claimed_at = :claimed)"
		values = map[string]types.AttributeValue{":seen": calls.Number(*row.Used), ":now": calls.Number(now), ":claimed": calls.Number(row.ClaimedAt)}
		before := map[string]types.AttributeValue{":seen": values[":seen"], ":now": values[":now"], ":before": calls.Number(row.CountedAt)}
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
	values[":used"], values[":bytes"], values[":one"] = calls.Number(credentials), calls.Number(bytes), calls.Number(1)
	_, _, err = p.update(ctx, workspace, "SET used = :used, bytes = :bytes, "+nextEpoch, unchanged, nil, values)
	return err
}

// update changes the workspace's row and returns the new attributes, unless the
// condition does not hold.
func (p *Positions) update(ctx context.Context, workspace ids.Workspace, change, condition string,
	names map[string]string, values map[string]types.AttributeValue, options ...func(*dynamodb.Options),
) (stored map[string]types.AttributeValue, held bool, err error) {
	out, err := p.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &p.table, Key: workspaceAt(workspace).attributes(),
		UpdateExpression: &change, ConditionExpression: aws.String(condition),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		ReturnValues: types.ReturnValueUpdatedNew,
	}, options...)
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
