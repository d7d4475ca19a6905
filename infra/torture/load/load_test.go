package load_test

import (
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/torture/load"
	"signalbox.dev/infra/torture/service"
)

// A short share of what `make torture` does at length.
func TestPromisesAreKeptUnderLoad(t *testing.T) {
	s, err := service.Start(t.Context(), service.Config{Root: "../../..", State: t.TempDir(), Parameters: load.Parameters()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	result, err := load.Run(t.Context(), load.Config{
		Service: s, Seed: 1,
		Sustained: 2 * time.Second, Overload: time.Second, Recovery: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range result.Broken {
		t.Error(broken)
	}
	if result.Audit.Acknowledged == 0 || result.Audit.Opened == 0 {
		t.Errorf("hardly anything happened: %+v", result.Audit)
	}
	var table strings.Builder
	if err := result.Table(&table); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	for _, want := range []string{"requests a second for 2s", "GET sync job", "edition", "recovery after overload"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q", want)
		}
	}
}
