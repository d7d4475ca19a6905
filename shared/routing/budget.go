package routing

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/ids"
)

// The tables' ceiling is for all accounts, so a budget bounds the read units that each
// account's requests consume. A read is paid for before it begins, with what the workspace's
// last read cost, and the charge is corrected after it. A read that must wait reserves nothing:
// while an account exceeds its budget, its large workspaces yield to its small ones.

const (
	// unitTime is the time in which an account's budget grows by one read unit: it has
	// 1,000 a second in each process. A workspace of 1 MB costs about 250 of them.
	unitTime = time.Millisecond
	// burst is how much of its budget an account may save.
	burst = time.Second
)

type budget struct {
	mu    sync.Mutex
	spent bounded[ids.Account, time.Time]        // the budget until then is spent
	costs bounded[ownedWorkspace, time.Duration] // of the last read: unitTime for each read unit
}

func newBudget() *budget {
	return &budget{spent: make(bounded[ids.Account, time.Time]), costs: make(bounded[ownedWorkspace, time.Duration])}
}

// charge is what one read of a workspace has paid.
type charge struct {
	budget    *budget
	workspace ownedWorkspace
	cost      time.Duration
}

// pay charges the account for a read of the workspace, or returns how long the read must
// wait.
func (b *budget) pay(w ownedWorkspace) (charge, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, cost := time.Now(), max(b.costs[w], unitTime)
	spent := b.spent[w.account]
	if spent.Before(now) {
		spent = now
	}
	spent = spent.Add(cost)
	if wait := spent.Sub(now) - burst; wait > 0 {
		return charge{}, wait
	}
	b.spent.set(w.account, spent)
	return charge{b, w, cost}, 0
}

// paidFrom returns what prepares a read: it pays for it, or returns how long the read must wait.
func paidFrom[V any](b *budget, read func(context.Context, ownedWorkspace, charge) (V, error)) func(ownedWorkspace) (readFunc[V], time.Duration) {
	return func(w ownedWorkspace) (readFunc[V], time.Duration) {
		paid, wait := b.pay(w)
		return func(ctx context.Context) (V, error) { return read(ctx, w, paid) }, wait
	}
}

// correct replaces the charge by the read units that the read consumed.
func (c charge) correct(units float64) {
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	used := time.Duration(units * float64(unitTime))
	c.budget.spent.set(c.workspace.account, c.budget.spent[c.workspace.account].Add(used-c.cost))
	c.budget.costs.set(c.workspace, min(used, burst)) // more could never be paid
}

// metered corrects the charge of a Query.
type metered struct {
	tables
	paid charge
}

// Query implements dynamodb.QueryAPIClient.
func (m metered) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.tables.Query(ctx, in, options...)
	if err == nil && out.ConsumedCapacity != nil {
		m.paid.correct(aws.ToFloat64(out.ConsumedCapacity.CapacityUnits))
	}
	return out, err
}

// bounded is a map of at most mostEntries. A full one loses one entry for a new one, in Go's
// random order of iteration. If the oldest left, entries that are used in turn would always
// leave before their next use.
type bounded[K comparable, V any] map[K]V

const mostEntries = 10_000

func (b bounded[K, V]) set(key K, value V) {
	if _, ok := b[key]; !ok && len(b) >= mostEntries {
		for other := range b {
			delete(b, other)
			break
		}
	}
	b[key] = value
}
