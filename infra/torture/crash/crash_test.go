package crash_test

import (
	"testing"
	"time"

	"signalbox.dev/infra/torture/crash"
)

// A short share of what `make torture` does at length.
func TestNothingIsLost(t *testing.T) {
	for _, versioning := range []string{"Off", "Enabled"} {
		t.Run(versioning, func(t *testing.T) {
			result, err := crash.Run(t.Context(), crash.Config{
				Root: "../../..", State: t.TempDir(), Versioning: versioning, Seed: 1, Duration: 3 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, broken := range result.Broken {
				t.Error(broken)
			}
			if result.Functions == 0 || result.Engines == 0 || result.Acknowledged == 0 || result.Opened == 0 {
				t.Errorf("hardly anything happened: %+v", result)
			}
			t.Logf("%+v", result)
		})
	}
}
