package routing

import (
	"sync"
	"time"

	"signalbox.dev/shared/ids"
)

const (
	// unitTime is the time in which an account's budget grows by one read unit: it has
	// 1,000 a second in each process. A workspace of 1 MB costs about 250 of them.
	unitTime = time.Millisecond
	// burst is how much of its budget an account may save.
	burst = time.Second
	// mostBudgets bounds each map.
	mostBudgets = 10_000
)

// budget bounds the read units that each account's requests consume: the tables' ceiling
// is for all accounts. A read is charged before it begins, with what the workspace's last
// read cost, and corrected after it.
type budget struct {
	mu    sync.Mutex
	spent map[ids.Account]time.Time        // the budget until then is spent
	costs map[ownedWorkspace]time.Duration // of the last read
}

func newBudget() *budget {
	return &budget{spent: make(map[ids.Account]time.Time), costs: make(map[ownedWorkspace]time.Duration)}
}

// charge is what one read of a workspace has paid. The zero charge is of a free read.
type charge struct {
	budget *budget
	of     ownedWorkspace
	cost   time.Duration
}

// charge implements paced.charge.
func (b *budget) charge(of ownedWorkspace) (charge, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, cost := time.Now(), max(b.costs[of], unitTime)
	spent := b.spent[of.account]
	if spent.Before(now) {
		spent = now
	}
	spent = spent.Add(cost)
	if wait := spent.Sub(now) - burst; wait > 0 {
		return charge{}, wait
	}
	put(b.spent, mostBudgets, of.account, spent)
	return charge{b, of, cost}, 0
}

// correct replaces the charge by the read units that the read consumed.
func (c charge) correct(units float64) {
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	used := time.Duration(units * float64(unitTime))
	put(c.budget.spent, mostBudgets, c.of.account, c.budget.spent[c.of.account].Add(used-c.cost))
	put(c.budget.costs, mostBudgets, c.of, min(used, burst))
}

// put stores a value. A full map loses one entry, in Go's random order of iteration: without
// all of them, or without the oldest, one entry too many would make the map useless.
func put[K comparable, V any](in map[K]V, most int, key K, value V) {
	if _, ok := in[key]; !ok && len(in) >= most {
		for other := range in {
			delete(in, other)
			break
		}
	}
	in[key] = value
}
