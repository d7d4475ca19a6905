package load

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"signalbox.dev/infra/torture/service"
)

// Memory is the resident memory of the processes of one role.
type Memory struct {
	Role string
	// Early and Late are medians of the second and of the last fifth of the
	// sustained phase; the first fifth is for caches and pools to fill. Peak is the
	// most at any time, overload included.
	Early, Late, Peak Usage
}

// Usage is what the processes of a role hold together.
type Usage struct {
	Bytes     uint64
	Processes int
}

// each is what one process holds. How many instances a function has follows
// from how many requests met, and the runtime bounds it: it is no leak.
func (u Usage) each() float64 { return float64(u.Bytes) / float64(max(1, u.Processes)) }

const (
	mebibyte = 1 << 20
	// A process that leaks grows without end. One that holds more than a quarter
	// and 32 MiB more after so many requests does; less is how garbage collectors
	// and allocators breathe. ExtendDB breathes deepest: it notes some 400 bytes of
	// metrics for each call, and every minute adds up those that are older than a
	// minute. A phase of less than ten minutes sees it fill.
	tolerated      = 1.25
	toleratedBytes = 32 * mebibyte
)

// Ratio is the late memory of a process over the early; 0 where the phase was too
// short for an early one.
func (m Memory) Ratio() float64 {
	if m.Early.Bytes == 0 {
		return 0
	}
	return m.Late.each() / m.Early.each()
}

// Grows reports whether memory is not flat.
func (m Memory) Grows() bool {
	return m.Ratio() > tolerated && m.Late.each()-m.Early.each() > toleratedBytes
}

// String tells both figures.
func (m Memory) String() string {
	return fmt.Sprintf("%.0f MB, later %.0f MB each", m.Early.each()/mebibyte, m.Late.each()/mebibyte)
}

// reading is the memory of all roles at one instant.
type reading struct {
	at    time.Time
	roles map[string]Usage
}

// watcher reads the memory of a service's processes every second.
type watcher struct{ readings []reading }

func (w *watcher) watch(ctx context.Context, s *service.Service) {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for ctx.Err() == nil {
		w.readings = append(w.readings, read(ctx, s))
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
}

func read(ctx context.Context, s *service.Service) reading {
	r := reading{at: time.Now(), roles: make(map[string]Usage)}
	for _, p := range s.Processes(ctx) {
		u := r.roles[p.Role]
		r.roles[p.Role] = Usage{Bytes: u.Bytes + p.Memory(ctx), Processes: u.Processes + 1}
	}
	return r
}

// judge is what was read of each role, where the sustained phase lay between two
// instants.
func (w *watcher) judge(begun, ended time.Time) []Memory {
	fifth := ended.Sub(begun) / 5
	roles := make(map[string]bool)
	for _, r := range w.readings {
		for role := range r.roles {
			roles[role] = true
		}
	}
	var all []Memory
	for _, role := range slices.Sorted(maps.Keys(roles)) {
		all = append(all, Memory{
			Role:  role,
			Early: median(w.between(role, begun.Add(fifth), begun.Add(2*fifth))),
			Late:  median(w.between(role, ended.Add(-fifth), ended)),
			Peak:  w.peak(role),
		})
	}
	return all
}

// between are the readings of a role, but those at which it had ended.
func (w *watcher) between(role string, from, to time.Time) []Usage {
	var all []Usage
	for _, r := range w.readings {
		if u, ok := r.roles[role]; ok && !r.at.Before(from) && r.at.Before(to) {
			all = append(all, u)
		}
	}
	return all
}

// median is the one in the middle, by what a process holds; nothing where there
// is none.
func median(all []Usage) Usage {
	if len(all) == 0 {
		return Usage{}
	}
	slices.SortFunc(all, func(a, b Usage) int { return cmp.Compare(a.each(), b.each()) })
	return all[len(all)/2]
}

// peak is the most that a role ever held.
func (w *watcher) peak(role string) Usage {
	var most Usage
	for _, r := range w.readings {
		if u := r.roles[role]; u.Bytes > most.Bytes {
			most = u
		}
	}
	return most
}
