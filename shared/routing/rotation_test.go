package routing_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/secret"
)

// TestRotationLeavesNoGap rotates a provider key while four routers plan
// requests. The states of the workspace are known and all different. Each plan
// must show a state from between its beginning and its end, and no state older
// than an earlier plan showed.
func TestRotationLeavesNoGap(t *testing.T) {
	const rotations, routers = 3, 4 // each rotation waits for routers, two seconds
	f := newFixture(t)
	store := f.credentials()
	drafts := make([]byok.Draft, rotations+1)
	states := map[string]int64{} // plan → number of its state
	shared := provider + " shared"
	for n := range drafts {
		var err error
		drafts[n], err = store.Seal(t.Context(), f.account, f.workspace, byok.New{
			Settings: byok.Settings{Provider: provider}, Key: secret.New([]byte("sk-rotated")),
		})
		kit.Must(t, err)
		drafts[n].SortOrder = int64(n)
		if n > 0 {
			states[fmt.Sprint([]string{string(drafts[n-1].ID), string(drafts[n].ID), shared})] = int64(2*n - 1)
		}
		states[fmt.Sprint([]string{string(drafts[n].ID), shared})] = int64(2 * n)
	}
	kit.Must(t, store.Create(t.Context(), drafts[0]))

	// Numbers of states: begun is the state that the running step leads to, ended
	// the last complete one, and shown the latest one that a plan showed.
	var begun, ended, shown, plans atomic.Int64
	var all sync.WaitGroup
	for range routers {
		router := *f
		router.reader = f.newReader(t, f.engines.Config)
		all.Go(func() {
			// The pause leaves the processor to others.
			for ; ended.Load() < 2*rotations; time.Sleep(5 * time.Millisecond) {
				least := max(ended.Load(), shown.Load())
				reading, err := router.plan(t, f.bearer)
				if err != nil {
					t.Error(err)
					return
				}
				plan := steps(reading.Plan)
				state, known := states[fmt.Sprint(plan)]
				if most := begun.Load(); !known || state < least || state > most {
					t.Errorf("a plan of %v, state %d (%t), want one from %d to %d", plan, state, known, least, most)
				}
				for old := shown.Load(); state > old && !shown.CompareAndSwap(old, state); old = shown.Load() {
				}
				plans.Add(1)
			}
		})
	}
	step := func(do func() error) {
		begun.Add(1)
		if err := do(); err != nil {
			t.Error(err)
		}
		ended.Add(1)
	}
	for n := range rotations {
		step(func() error { return store.Create(t.Context(), drafts[n+1]) })
		step(func() error {
			_, err := f.manager().Supersede(t.Context(), f.workspace, drafts[n].ID, drafts[n+1].ID)
			return err
		})
	}
	all.Wait()
	if plans.Load() < rotations {
		t.Errorf("only %d plans", plans.Load())
	}
}
