package load

import (
	"fmt"
	"slices"
	"time"
)

// window is how long everything must be well to count as recovered. A recovery
// phase that is shorter shows nothing.
const window = 5 * time.Second

// Recovery is how a service came back after overload.
type Recovery struct {
	// Judged says that the phase was long enough to tell.
	Judged bool
	// Recovered says that from After on, counted from the end of overload, all
	// requests of a window succeeded, 99 of 100 of them within Limit.
	Recovered    bool
	After, Limit time.Duration
	// Relapses counts the requests after that which did not succeed.
	Relapses int
}

// recovered finds the earliest second of the phase from which all is well.
func (p *Phase) recovered(limit time.Duration) Recovery {
	r := Recovery{Judged: p.Duration >= window, Limit: limit}
	for ; r.After+window <= p.Duration && !r.Recovered; r.After += time.Second {
		r.Recovered = well(p.samples, r.After, limit)
	}
	if !r.Recovered {
		return r
	}
	r.After -= time.Second
	for _, s := range p.samples {
		if s.due >= r.After && !s.success {
			r.Relapses++
		}
	}
	return r
}

// well looks at the window from one instant on.
func well(samples []sample, from, limit time.Duration) bool {
	var took []time.Duration
	for _, s := range samples {
		if s.due < from || s.due >= from+window {
			continue
		}
		if !s.success {
			return false
		}
		took = append(took, s.took)
	}
	slices.Sort(took)
	return len(took) > 0 && took[len(took)*99/100] <= limit
}

func (r Recovery) broken() []string {
	switch {
	case !r.Judged:
		return nil
	case !r.Recovered:
		return []string{fmt.Sprintf("not recovered: never %v without a failure, 99 of 100 within %v", window, r.Limit)}
	case r.Relapses > 0:
		return []string{fmt.Sprintf("%d requests failed after the service had recovered", r.Relapses)}
	default:
		return nil
	}
}
