package crash_test

import (
	"context"
	"flag"
	"testing"
	"time"

	"signalbox.dev/infra/torture/crash"
)

// `make torture` sets both; the defaults are what `make test` has time for.
var (
	length = flag.Duration("length", 3*time.Second, "how long each scenario runs")
	seed   = flag.Uint64("seed", 1, "of all random choices")
)

func TestKilledProcessesLoseNothing(t *testing.T) {
	for _, versioning := range []string{"Off", "Enabled", "Suspended"} {
		t.Run(versioning, func(t *testing.T) {
			result := check(t, crash.Run, versioning)
			if result.Functions == 0 || result.Engines == 0 {
				t.Errorf("nothing was killed: %+v", result)
			}
		})
	}
}

func TestOverloadLosesNothing(t *testing.T) {
	if result := check(t, crash.Overload, "Off"); result.Throttled == 0 {
		t.Errorf("nothing was throttled: %+v", result)
	}
}

func check(t *testing.T, run func(context.Context, crash.Config) (crash.Result, error), versioning string) crash.Result {
	t.Helper()
	result, err := run(t.Context(), crash.Config{
		Root: "../../..", State: t.ArtifactDir(), Versioning: versioning, Seed: *seed, Duration: *length,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range result.Broken {
		t.Error(broken)
	}
	if result.Acknowledged == 0 || result.Opened == 0 {
		t.Errorf("hardly anything happened: %+v", result)
	}
	t.Logf("seed %d: %+v", *seed, result)
	return result
}
