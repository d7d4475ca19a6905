package limits

import "sync"

// remembered is how many callers an instance remembers.
const remembered = 1000

// memory holds the last arrival time seen of some callers. It may be wrong or
// out of date: only the order of updates depends on it, never a decision. The
// zero memory is empty.
type memory struct {
	mu  sync.Mutex
	tat map[string]int64
}

// of is the caller's arrival time; 0 where none is remembered.
func (m *memory) of(caller string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tat[caller]
}

// keep remembers the caller's arrival time, and forgets any other where there
// are too many.
func (m *memory) keep(caller string, tat int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tat == nil {
		m.tat = map[string]int64{}
	}
	m.tat[caller] = tat
	for other := range m.tat {
		if len(m.tat) <= remembered {
			return
		}
		if other != caller {
			delete(m.tat, other)
		}
	}
}
