package history_test

import (
	"flag"
	"testing"

	"signalbox.dev/infra/torture/history"
)

// `make torture` sets both; the defaults are what `make test` has time for.
var (
	length = flag.Duration("length", 0, "how long rounds go on, beyond the first four")
	seed   = flag.Uint64("seed", 1, "of all random choices")
)

func TestHistoriesAreAllowed(t *testing.T) {
	result, err := history.Run(t.Context(), history.Config{
		Root: "../../..", State: t.ArtifactDir(), Seed: *seed, Rounds: 4, Duration: *length,
	})
	must(t, err)
	for _, broken := range result.Broken {
		t.Error(broken)
	}
	if result.Stormy == 0 || result.Unexpected > 0 {
		t.Errorf("%+v", result)
	}
	t.Logf("seed %d: %+v", *seed, result)
}
