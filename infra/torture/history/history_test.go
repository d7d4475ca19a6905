package history_test

import (
	"flag"
	"testing"
	"time"

	"signalbox.dev/infra/torture/history"
)

// `make torture` sets both; the defaults are what `make test` has time for.
var (
	length = flag.Duration("length", 2*time.Second, "how long each scenario runs")
	seed   = flag.Uint64("seed", 1, "of all random choices")
)

func TestKilledProcessesLoseNothing(t *testing.T) {
	for _, versioning := range []string{"Off", "Enabled", "Suspended"} {
		t.Run(versioning, func(t *testing.T) { run(t, history.Config{Kill: true, Versioning: versioning}) })
	}
}

// Far more requests than the gateway's throttle passes, then more than two cores
// can serve.
func TestOverloadLosesNothing(t *testing.T) {
	if result := run(t, history.Config{Crowd: 12, Throttle: 15}); result.Throttled == 0 {
		t.Errorf("nothing was throttled: %+v", result)
	}
	run(t, history.Config{Crowd: 12})
}

func run(t *testing.T, c history.Config) history.Result {
	t.Helper()
	c.State, c.Seed, c.Rounds, c.Duration = t.ArtifactDir(), *seed, 2, *length
	result := history.Run(t, c)
	for _, broken := range result.Broken {
		t.Error(broken)
	}
	if result.Opened == 0 {
		t.Errorf("nothing was stored: %+v", result)
	}
	t.Logf("seed %d: %+v", *seed, result)
	return result
}
