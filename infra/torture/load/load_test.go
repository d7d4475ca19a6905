package load_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/torture/load"
	"signalbox.dev/infra/torture/service"
)

// throttles are such that little is too much: the machine may do other things as
// well.
func throttles() map[string]string {
	p := load.Parameters()
	for _, method := range []string{"GetSyncJob", "CreateByokKey", "DeleteFile"} {
		p[method+"ThrottleRate"], p[method+"ThrottleBurst"] = "30", "30"
	}
	return p
}

// A short share of what `make torture` does at length.
func TestPromisesAreKeptUnderLoad(t *testing.T) {
	s, err := service.Start(t.Context(), service.Config{Root: "../../..", State: t.TempDir(), Parameters: throttles()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	result, err := load.Run(t.Context(), load.Config{
		Service: s, Seed: 1, Rate: 30,
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
	if shed := result.Phases[2].All().Statuses[http.StatusTooManyRequests]; shed == 0 {
		t.Error("nothing was refused in overload")
	}
	var table strings.Builder
	if err := result.Table(&table); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	for _, want := range []string{"sustained: 30 requests a second for 2s", "GET sync job", "edition", "recovery after overload"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q", want)
		}
	}
}
