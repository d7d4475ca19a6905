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
	// mostBudgets bounds the maps. When they hold so many entries, they are emptied.
	mostBudgets = 10_000
)

// budget bounds the read units that each account's requests consume: the tables' ceiling
// is for all tenants. A read is charged before it begins, with what the workspace's last
// read cost, and corrected after it.
type budget struct {
	mu    sync.Mutex
	paid  map[ids.Account]time.Time // the budget until then is spent
	costs map[tenant]time.Duration  // of the last read
}

// charge implements reads.charge.
func (b *budget) charge(of tenant) (settle, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.paid)+len(b.costs) >= mostBudgets || b.paid == nil {
		b.paid, b.costs = make(map[ids.Account]time.Time), make(map[tenant]time.Duration)
	}
	now, cost := time.Now(), max(b.costs[of], unitTime)
	paid := b.paid[of.account]
	if paid.Before(now) {
		paid = now
	}
	paid = paid.Add(cost)
	if wait := paid.Sub(now) - burst; wait > 0 {
		return nil, wait
	}
	b.paid[of.account] = paid
	return func(units float64) {
		b.mu.Lock()
		defer b.mu.Unlock()
		used := time.Duration(units * float64(unitTime))
		b.paid[of.account] = b.paid[of.account].Add(used - cost)
		b.costs[of] = min(used, burst)
	}, 0
}
