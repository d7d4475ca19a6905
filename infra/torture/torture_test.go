package torture

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/client"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/syncjobs"
)

// `make torture` sets the length; without it `make test` runs a round of fewer scenarios.
var (
	length = flag.Duration("length", 0, "how long each scenario runs; 0 for one round")
	seed   = flag.Uint64("seed", 1, "of all random choices")
)

const (
	unlimited = 100000 // deletions a minute of each API key: more than the workers ask for

	unthrottled = 100000 // requests a second: more than any machine serves

	workers = 8  // in a group
	acts    = 15 // by a worker in a round
)

// storm is one run of workers against a service of its own.
type storm struct {
	// Groups of workers act at once. Each has a tenant, and is one round of the run.
	Groups int
	// Kill kills functions, engines and the whole edition until each kind was killed.
	Kill bool
	// Throttle is the gateway's limit for each operation, in requests a second.
	Throttle int
	// Versioning is the template's FilesVersioning.
	Versioning string

	service *Service
	client  *client.Client

	Acts, Uncertain, Throttled atomic.Int64
	opened                     int

	mu         sync.Mutex
	violations []string
}

// group is a tenant and its workers.
type group struct {
	tenant  testkit.Tenant
	job     ids.Job
	workers []*worker
}

func TestKilledProcessesLoseNothing(t *testing.T) {
	versionings := []string{"Suspended", "Enabled", "Off"}
	if *length == 0 {
		versionings = versionings[:1]
	}
	for _, versioning := range versionings {
		t.Run(versioning, func(t *testing.T) {
			s := &storm{Groups: 1, Kill: true, Throttle: unthrottled, Versioning: versioning}
			s.run(t)
			s.mustKeepAll(t)
		})
	}
}

// First the gateway throttles most requests, then two cores cannot serve them all.
func TestOverloadLosesNothing(t *testing.T) {
	for _, throttle := range []int{15, unthrottled} {
		s := &storm{Groups: 6, Throttle: throttle, Versioning: "Off"}
		s.run(t)
		s.mustKeepAll(t)
		if throttled := s.Throttled.Load() > 0; throttled != (throttle < unthrottled) {
			t.Errorf("throttle %d: a request was throttled: %t", throttle, throttled)
		}
	}
}

func (s *storm) mustKeepAll(t *testing.T) {
	t.Helper()
	for _, v := range s.violations {
		t.Error(v)
	}
	if s.opened == 0 {
		t.Error("nothing was stored")
	}
	t.Logf("seed %d: %d acts, %d without a certain response, %d throttled, %d provider keys opened",
		*seed, s.Acts.Load(), s.Uncertain.Load(), s.Throttled.Load(), s.opened)
}

// rough reports whether a response may be lost and the SDK may repeat a request.
func (s *storm) rough() bool { return s.Kill || s.Groups > 1 }

// run runs rounds until the time is up and each kind of process was killed.
func (s *storm) run(t *testing.T) {
	t.Helper()
	state := t.ArtifactDir()
	var err error
	s.service, err = Start(t.Context(), state, map[string]string{
		"ReadsPerSecond": fmt.Sprint(s.Throttle), "CreatesPerSecond": fmt.Sprint(s.Throttle), "DeletesPerSecond": fmt.Sprint(s.Throttle),
		"DeleteRatePerMinute": fmt.Sprint(unlimited), "DeleteBurst": fmt.Sprint(unlimited), "FilesVersioning": s.Versioning,
	})
	testkit.Must(t, err)
	s.client = client.New(s.service.BaseURL(), s.Groups*workers)
	random := rand.New(rand.NewPCG(*seed, 0)) //nolint:gosec // repeatable, on purpose
	killer, end := &Killer{TB: t, Service: s.service, Random: random}, time.Now().Add(*length)
	for round := 0; round == 0 || time.Now().Before(end) || s.Kill && !killer.KilledAll(); round++ {
		var groups []*group
		for range s.Groups {
			groups = append(groups, s.newGroup(t, random))
		}
		s.act(t, groups, killer)
		if s.rough() {
			testkit.Must(t, s.service.Restart(t.Context())) // compare the data on disk, not in the memory of a process
		}
		for _, g := range groups {
			s.compare(t, g)
		}
	}
	testkit.Must(t, s.service.Close())
	leaks, err := testkit.Leaks(state)
	testkit.Must(t, err)
	s.violations = append(s.violations, leaks...)
}

func (s *storm) newGroup(t *testing.T, random *rand.Rand) *group {
	t.Helper()
	stack, _ := s.service.Stack()
	g := &group{tenant: testkit.NewTenant(t, auth.NewRegistry(stack.DynamoDB, stack.Access))}
	var err error
	g.job, err = syncjobs.NewWriter(stack.DynamoDB, stack.Jobs).Create(t.Context(), g.tenant.ID)
	testkit.Must(t, err)
	for i := range workers {
		own := rand.New(rand.NewPCG(random.Uint64(), 0)) //nolint:gosec // repeatable, on purpose
		g.workers = append(g.workers, &worker{storm: s, group: g, random: own, name: fmt.Sprint(i)})
	}
	return g
}

// act lets the workers of a round act while processes are killed.
func (s *storm) act(t *testing.T, groups []*group, killer *Killer) {
	t.Helper()
	during, calm := context.WithCancel(t.Context())
	var all, kills sync.WaitGroup
	var err error
	if s.Kill {
		kills.Go(func() { err = killer.Run(during) })
	}
	for _, g := range groups {
		for _, x := range g.workers {
			all.Go(func() {
				for range acts {
					x.act()
				}
			})
		}
	}
	all.Wait()
	calm()
	kills.Wait()
	testkit.Must(t, err)
}

// compare compares the workers' knowledge with the storage.
func (s *storm) compare(t *testing.T, g *group) {
	t.Helper()
	want := map[string]*create{}
	for _, x := range g.workers {
		x.settle(t)
		for _, c := range x.creates {
			want[c.name] = c
		}
	}
	stack, _ := s.service.Stack()
	found, places := map[string]int{}, map[string]bool{}
	opener := seal.NewOpener(stack.KMS, stack.SealingKey)
	for _, c := range testkit.Credentials(t, testkit.Rows{DB: stack.DynamoDB, Table: stack.Credentials}.Of(t, "workspace#"+string(g.tenant.Workspace))) {
		c.Account, c.Workspace = g.tenant.ID, g.tenant.Workspace // it must have been sealed for them
		plain, err := c.Open(t.Context(), opener)
		if err != nil || string(plain.Reveal()) != keyOf(c.Name) {
			s.violation("%s does not open, or not to the key that was sent: %v", c.Name, err)
		}
		s.opened++
		at := fmt.Sprintf("%s at %d", c.ID, c.SortOrder)
		if w := want[c.Name]; w == nil || w.stored != at && (w.stored != "" || !w.perhaps || w.bad) {
			s.violation("%s is stored as %s, and was not answered", c.Name, at)
		}
		if places[fmt.Sprint(c.SortOrder)] {
			s.violation("two credentials have the sort_order %d", c.SortOrder)
		}
		places[fmt.Sprint(c.SortOrder)] = true
		found[c.Name]++
	}
	for name, c := range want {
		if n := found[name]; n > 1 || n == 0 && c.stored != "" {
			s.violation("%s is stored %d times", name, n)
		}
	}
}

// violation records an event that the contract does not allow.
func (s *storm) violation(format string, values ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.violations = append(s.violations, fmt.Sprintf(format, values...))
}
