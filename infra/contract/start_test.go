package contract_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"signalbox.dev/infra/contract/leakscan"
	"signalbox.dev/infra/local/edition"
)

// startTime bounds the start of an edition, from an empty state folder.
const startTime = time.Minute

// local is a single-machine edition that the suite started.
type local struct {
	edition *edition.Edition
	state   string
}

// startLocal starts an edition that keeps its state in the folder, under the
// suite's own limits and the parameters given.
func startLocal(state string, parameters map[string]string) (*local, place, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	all := map[string]string{"DeleteRatePerMinute": fmt.Sprint(perMinute), "DeleteBurst": fmt.Sprint(burst)}
	maps.Copy(all, parameters)
	o := edition.Options{Root: "../..", State: state, Parameters: all, Functions: os.Getenv("SIGNALBOX_FUNCTIONS")}
	if the.calls != nil {
		o.Record = the.calls.note
	}
	e, err := edition.Start(ctx, o)
	if err != nil {
		return nil, place{}, fmt.Errorf("starting the single-machine edition: %w", err)
	}
	p, err := open(e.BaseURL, filepath.Join(state, "stack.json"))
	return &local{e, state}, p, err
}

// stop stops the edition and searches all that it leaves for secrets. Its demo
// account is no secret of the suite.
func (l *local) stop() error {
	if err := l.edition.Close(); err != nil {
		return fmt.Errorf("stopping the edition: %w", err)
	}
	if err := os.Remove(filepath.Join(l.state, "demo.json")); err != nil {
		return fmt.Errorf("setting the demo account aside: %w", err)
	}
	found, err := leakscan.Search(os.DirFS(l.state), marker)
	for _, leak := range found {
		err = errors.Join(err, errors.New("leak: "+leak))
	}
	return err
}

// start starts an edition of the test's own.
func start(t *testing.T, parameters map[string]string) place {
	t.Helper()
	l, p, err := startLocal(t.TempDir(), parameters)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}
