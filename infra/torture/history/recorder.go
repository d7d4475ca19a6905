package history

import (
	"math"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// never is the end of an operation that may take its effect at any time.
const never = math.MaxInt64

// recorder notes what clients did and saw.
type recorder struct {
	began time.Time

	mu  sync.Mutex
	all []porcupine.Operation
}

func (r *recorder) now() int64 { return int64(time.Since(r.began)) }

// note notes what an operation showed, from its call to its end.
func (r *recorder) note(client int, call, end int64, shown ...event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range shown {
		r.all = append(r.all, porcupine.Operation{ClientId: client, Input: e, Call: call, Return: end})
	}
}
