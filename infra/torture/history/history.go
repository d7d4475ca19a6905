// Package history records what many clients do at once to the same few objects,
// and which responses they get, and has a checker (porcupine) decide whether the
// contract allows it: creates with and without idempotency keys, deletes,
// revocations of keys, deletions of workspaces, uploads, steps of jobs, reads.
// Meanwhile processes may be killed, or more be asked of the service than it can
// do. At the end storage is read as well: what was acknowledged is there, what was
// refused is not, and what got no response is there whole or not at all.
package history

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/client"
	"signalbox.dev/infra/torture/service"
)

const (
	root = "../../.."
	// clients of a round act at once, each so many times.
	clients = 8
	actions = 15
	// searchTimeout bounds the search for an order of one round's operations.
	searchTimeout = time.Minute

	// The objects of a round: few, so that clients meet at them.
	workspaces = 3
	keys       = 3
	jobs       = 2
	fileCount  = 8
	onceKeys   = 3

	// The limiter's rate and burst: narrow enough for exceedLimit, wide enough for
	// the clients.
	ratePerMinute = 1200
	burst         = 100

	// never is the end of an operation that may take effect at any time.
	never = math.MaxInt64
)

var providers = []string{"openai", "anthropic"}

// Config is one run.
type Config struct {
	// State is an empty folder.
	State string
	Seed  uint64
	// Rounds and Duration are the least of a run.
	Rounds   int
	Duration time.Duration
	// Kill kills functions, engines and the whole edition during each round. The run
	// goes on until each kind was killed.
	Kill bool
	// Crowd is how many rounds share the service at a time, more than it can serve.
	// Zero means one, alone.
	Crowd int
	// Throttle is the gateway's, in requests a second of each operation. Zero means
	// none.
	Throttle int
	// Versioning is the template's FilesVersioning. Empty means Off.
	Versioning string
	// Via returns the base URL of a proxy between clients and service. Nil means
	// none.
	Via func(base string) string
}

// Result counts what happened.
type Result struct {
	// Rounds are the checked histories.
	Rounds int
	service.Kills
	// Operations are requests, administration and reads; Observations what they
	// showed of the Objects.
	Operations, Observations, Objects int
	// Uncertain operations got no response, or a 500; Throttled ones a 429.
	Uncertain, Throttled int
	// Opened counts the stored keys that were opened.
	Opened int
	// Broken are the promises that were not kept.
	Broken []string
}

// Run runs rounds of clients against a service of its own.
func Run(t testing.TB, c Config) (result Result) {
	t.Helper()
	s, err := service.Start(t.Context(), service.Config{Root: root, State: c.State, Parameters: service.Throttled(
		cmp.Or(c.Throttle, service.Unthrottled), map[string]string{
			"DeleteRatePerMinute": fmt.Sprint(ratePerMinute), "DeleteBurst": fmt.Sprint(burst), "FilesVersioning": cmp.Or(c.Versioning, "Off"),
		})})
	testkit.Must(t, err)
	base, end := s.BaseURL(), time.Now().Add(c.Duration)
	if c.Via != nil {
		base = c.Via(base)
	}
	killer := &service.Killer{Service: s, Random: rand.New(rand.NewPCG(c.Seed, clients))} //nolint:gosec // repeatable, on purpose
	for number := uint64(0); result.Rounds < max(c.Rounds, 1) || time.Now().Before(end) || c.Kill && !killer.KilledAll(); {
		var together []*round
		for range max(c.Crowd, 1) {
			together = append(together, newRound(t, c, s, client.New(base, clients), number))
			number++
		}
		var storm, all sync.WaitGroup
		during, calm := context.WithCancel(t.Context())
		if c.Kill {
			storm.Go(func() { err = killer.Run(during) })
			storm.Go(func() { together[0].exceedLimit(during) })
		}
		for _, r := range together {
			all.Go(r.act)
		}
		all.Wait()
		calm()
		storm.Wait()
		testkit.Must(t, err)
		if c.rough() {
			testkit.Must(t, s.Restart(t.Context())) // what is on disk counts, not what a process has in memory
		}
		for _, r := range together {
			r.finish(t)
			r.judge(t, &result)
		}
	}
	result.Kills = killer.Kills
	testkit.Must(t, s.Close())
	leaks, err := testkit.Leaks(c.State)
	testkit.Must(t, err)
	result.Broken = append(result.Broken, leaks...)
	return result
}

// rough reports whether a response may be lost and the SDK of the test, or of a
// function, send its request again.
func (c Config) rough() bool { return c.Kill || c.Crowd > 0 }
