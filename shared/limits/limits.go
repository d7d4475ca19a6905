// Package limits is an exact rate limiter: the generic cell rate algorithm
// (GCRA, ITU-T I.371) over one DynamoDB item for each caller. Conditional
// writes settle races: many instances at once let through exactly as many requests as one.
//
// The item holds the theoretical arrival time, tat: the instant at which the
// whole burst is free again. A refused request writes nothing. In one process it is
//
//	if tat > now+(burst-1)*interval {
//		return false
//	}
//	tat = max(tat, now) + interval
//	return true
//
// A request passes by one of two conditional updates: one if the caller is idle, the
// other within the burst. The caller's last arrival time decides which is tried first. That
// is a guess, and either order is exact.
package limits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
)

// Rate is how many requests a caller may make.
type Rate struct {
	interval time.Duration // average time between two requests
	burst    int64
}

// The bounds of a rate. They keep every sum of the algorithm within 63 bits of
// nanoseconds.
const (
	MaxPerMinute = 1_000_000
	MaxBurst     = 100_000
)

// NewRate allows perMinute requests in the long run, and burst requests at one instant
// from idle.
func NewRate(perMinute, burst int64) (Rate, error) {
	if perMinute < 1 || perMinute > MaxPerMinute || burst < 1 || burst > MaxBurst {
		return Rate{}, fmt.Errorf("a rate is 1 to %d a minute, a burst 1 to %d", MaxPerMinute, MaxBurst)
	}
	// Rounded up, because never more than perMinute may pass.
	return Rate{interval: (time.Minute + time.Duration(perMinute-1)) / time.Duration(perMinute), burst: burst}, nil
}

// tolerance is how far the stored tat may lie in the future if a request passes.
func (r Rate) tolerance() time.Duration { return time.Duration(r.burst-1) * r.interval }

// Decision is the outcome of one request.
type Decision struct {
	Allowed    bool
	Burst      int64
	Remaining  int64         // requests that would pass at this instant
	Window     time.Duration // from an empty burst to a full one
	Reset      time.Duration // until the burst is full again
	RetryAfter time.Duration // until the next request would pass; 0 if this one did
}

// Limiter counts one kind of request.
type Limiter struct {
	db     calls.ItemUpdater
	table  string
	prefix string
	now    func() time.Time
	seen   memory
}

// New counts requests of this name in the control table.
func New(db calls.ItemUpdater, table, name string) *Limiter {
	return &Limiter{db: db, table: table, prefix: "limit#" + name + "#", now: time.Now}
}

// Take decides on one request of the caller. After an error the request may be counted
// although it did not pass, never the reverse. If DynamoDB throttles the item's
// partition, the caller is refused as for an exceeded rate; any other throttling is an
// error.
func (l *Limiter) Take(ctx context.Context, caller string, rate Rate) (Decision, error) {
	now := l.now().UnixNano()
	o, err := l.take(ctx, caller, rate, now)
	if isOwnThrottle(err) {
		// As if the whole burst were used: the next request passes after one interval.
		return rate.decide(outcome{tat: now + rate.tolerance().Nanoseconds() + rate.interval.Nanoseconds()}, now), nil
	}
	if err != nil {
		return Decision{}, fmt.Errorf("rate limiting: %w", err)
	}
	l.seen.keep(caller, o.tat)
	return rate.decide(o, now), nil
}

// take tries the likelier update first. A stored arrival time never decreases. So if a
// remembered one is in the future, it is wrong only if the item is gone.
func (l *Limiter) take(ctx context.Context, caller string, rate Rate, now int64) (outcome, error) {
	if l.seen.of(caller) > now {
		if o, err := l.update(ctx, caller, rate.withinBurst(now)); err != nil || o.applied || o.tat > now {
			return o, err
		}
	}
	o, err := l.update(ctx, caller, rate.fromIdle(now))
	if err != nil || o.applied || o.tat > now+rate.tolerance().Nanoseconds() {
		return o, err
	}
	return l.update(ctx, caller, rate.withinBurst(now))
}

// change moves the arrival time on, if the condition holds.
type change struct {
	update, condition string
	numbers           map[string]int64 // of the expressions
	latest            int64            // the new arrival time is this at most
}

// fromIdle lets a request pass if the whole burst is free: the arrival time starts from now.
func (r Rate) fromIdle(now int64) change {
	next := now + r.interval.Nanoseconds()
	return change{
		update: "SET tat = :next, exp = :exp", condition: "attribute_not_exists(tat) OR tat <= :now",
		numbers: map[string]int64{":next": next, ":now": now}, latest: next,
	}
}

// withinBurst lets a request pass if a part of the burst is free: the stored arrival time
// moves on.
func (r Rate) withinBurst(now int64) change {
	interval, latest := r.interval.Nanoseconds(), now+r.tolerance().Nanoseconds()
	return change{
		update: "SET tat = tat + :interval, exp = :exp", condition: "tat > :now AND tat <= :latest",
		numbers: map[string]int64{":interval": interval, ":now": now, ":latest": latest}, latest: latest + interval,
	}
}

// outcome is the state after a conditional update.
type outcome struct {
	applied bool
	tat     int64 // Unix nanoseconds; after the update if it was applied
}

// update makes the change. The item must not expire before its arrival time.
func (l *Limiter) update(ctx context.Context, caller string, c change) (outcome, error) {
	values := map[string]types.AttributeValue{":exp": calls.Number(c.latest/int64(time.Second) + 1)}
	for name, n := range c.numbers {
		values[name] = calls.Number(n)
	}
	out, err := l.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                           &l.table,
		Key:                                 map[string]types.AttributeValue{"pk": calls.Text(l.prefix + caller)},
		UpdateExpression:                    &c.update,
		ConditionExpression:                 &c.condition,
		ExpressionAttributeValues:           values,
		ReturnValues:                        types.ReturnValueUpdatedNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}, unlessThrottled)
	if stored, failed := calls.ConditionFailed(err); failed {
		tat, err := arrival(stored)
		return outcome{tat: tat}, err
	}
	if err != nil {
		return outcome{}, err
	}
	tat, err := arrival(out.Attributes)
	if err == nil && tat == 0 {
		err = errors.New("empty response to a limiter's update")
	}
	return outcome{applied: true, tat: tat}, err
}

// isOwnThrottle reports whether DynamoDB throttled the partition of this item: few items
// share a partition, so this caller has nearly always sent the excess requests.
// Throttling of the table or the account, or without a reason, is not the caller's.
func isOwnThrottle(err error) bool {
	var reasons []types.ThrottlingReason
	if throughput, ok := errors.AsType[*types.ProvisionedThroughputExceededException](err); ok {
		reasons = throughput.ThrottlingReasons
	} else if limit, ok := errors.AsType[*types.RequestLimitExceeded](err); ok {
		reasons = limit.ThrottlingReasons
	} else if throttling, ok := errors.AsType[*types.ThrottlingException](err); ok {
		reasons = throttling.ThrottlingReasons
	}
	for _, r := range reasons {
		if !strings.HasSuffix(aws.ToString(r.Reason), "KeyRangeThroughputExceeded") {
			return false
		}
	}
	return len(reasons) > 0
}

// unlessThrottled keeps the SDK from repeating an update if its item is throttled: the
// caller is refused, and each attempt would add to the load on the item's partition.
func unlessThrottled(o *dynamodb.Options) {
	o.Retryer = calls.DecideRetries(o.Retryer, func(err error, again bool) bool { return again && !isOwnThrottle(err) })
}

// arrival reads tat. It is 0 if the item is gone: no passing request leaves 0, as which the decoder
// reads NULL.
func arrival(item map[string]types.AttributeValue) (int64, error) {
	var row struct {
		TAT int64 `dynamodbav:"tat"`
	}
	damage := calls.Decode(item, &row)
	if item["tat"] != nil && row.TAT == 0 {
		damage = cmp.Or(damage, errors.New("no arrival time"))
	}
	if damage != nil {
		return 0, &calls.Damage{Kind: "limiter", ID: "item", Wrong: damage}
	}
	return row.TAT, nil
}

// decide derives the decision from the arrival time at the instant now.
func (r Rate) decide(o outcome, now int64) Decision {
	ahead := max(0, time.Duration(o.tat-now))
	d := Decision{
		Allowed: o.applied,
		Burst:   r.burst,
		Window:  time.Duration(r.burst) * r.interval,
		Reset:   ahead,
	}
	if o.applied {
		used := (ahead + r.interval - 1) / r.interval
		d.Remaining = max(0, r.burst-int64(used))
	} else {
		d.RetryAfter = max(1, ahead-r.tolerance())
	}
	return d
}

// maxCallers is how many callers an instance remembers.
const maxCallers = 1000

// memory holds the last seen arrival time of some callers. It may be wrong or out of
// date: only the order of updates depends on it, never a decision. The zero memory is
// empty.
type memory struct {
	mu  sync.Mutex
	tat map[string]int64
}

// of returns the caller's arrival time, 0 if none is remembered.
func (m *memory) of(caller string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tat[caller]
}

// keep remembers the caller's arrival time. If it is full, a new caller makes it forget all
// others.
func (m *memory) keep(caller string, tat int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.tat[caller]; m.tat == nil || !known && len(m.tat) >= maxCallers {
		m.tat = map[string]int64{}
	}
	m.tat[caller] = tat
}
