package history_test

import (
	"testing"

	"signalbox.dev/infra/torture/history"
)

// A short share of what `make torture` does at length.
func TestHistoriesAreAllowed(t *testing.T) {
	result, err := history.Run(t.Context(), history.Config{
		Root: "../../..", State: t.TempDir(), Seed: 1, Rounds: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range result.Broken {
		t.Error(broken)
	}
	if result.Stormy == 0 || result.Unexpected > 0 {
		t.Errorf("%+v", result)
	}
	t.Logf("%+v", result)
}
