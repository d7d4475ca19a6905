package torture

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

// TestRotationLeavesNoGap rotates a provider key while four routers plan
// requests. The states of the workspace are known and all different; each plan
// must show a state between the plan's beginning and its end, and none before one
// that an earlier plan showed.
func TestRotationLeavesNoGap(t *testing.T) {
	const rotations, readers = 8, 4 // each rotation waits for readers
	s, err := Start(t.Context(), Config{Root: "../..", State: t.TempDir()})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	stack, _ := s.Stack()
	account := testkit.NewTenant(t, auth.NewRegistry(stack.DynamoDB, stack.Access))
	w := account.Workspace
	bearer, err := auth.ParseBearer([]string{"Bearer " + account.StandardKey(t, "")})
	testkit.Must(t, err)
	store := byok.NewStore(stack.DynamoDB, stack.Credentials, stack.Control, seal.NewSealer(stack.KMS, stack.SealingKey))
	drafts := make([]byok.Draft, rotations+1)
	states := map[string]int64{} // the number of each state, by its plan
	for n := range drafts {
		drafts[n], err = store.Seal(t.Context(), account.ID, w, byok.New{
			Settings: byok.Settings{Provider: "openai"}, Key: secret.New([]byte("sk-rotated")),
		})
		testkit.Must(t, err)
		drafts[n].SortOrder = int64(n)
		if n > 0 {
			states[fmt.Sprint([]ids.Credential{drafts[n-1].ID, drafts[n].ID})] = int64(2*n - 1)
		}
		states[fmt.Sprint([]ids.Credential{drafts[n].ID})] = int64(2 * n)
	}
	testkit.Must(t, store.Create(t.Context(), drafts[0]))

	// Numbers of states: the next one while a step runs, the current one, and the
	// latest that a plan showed.
	var begun, ended, shown, plans atomic.Int64
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			reader, err := routing.NewReader(stack.DynamoDB, stack.KMS, routing.Config{
				AccessTable: stack.Access, CredentialsTable: stack.Credentials, SealingKeyARNs: []string{stack.SealingKey},
			})
			for err == nil && ended.Load() < 2*rotations {
				least := max(ended.Load(), shown.Load())
				var caller *routing.Caller
				if caller, err = reader.Identify(t.Context(), bearer); err != nil {
					break
				}
				var reading *routing.Reading
				if reading, err = reader.Read(t.Context(), caller, routing.Request{Providers: []string{"openai"}}); err != nil {
					break
				}
				var plan []ids.Credential
				for _, step := range reading.Steps {
					if !step.IsShared() {
						plan = append(plan, step.Credential)
					}
				}
				state, known := states[fmt.Sprint(plan)]
				if most := begun.Load(); !known || state < least || state > most {
					t.Errorf("a plan of %v, state %d (%t), want one from %d to %d", plan, state, known, least, most)
				}
				for old := shown.Load(); state > old && !shown.CompareAndSwap(old, state); old = shown.Load() {
				}
				plans.Add(1)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	manager := byok.NewManager(stack.DynamoDB, stack.Credentials)
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
			_, err := manager.Supersede(t.Context(), w, drafts[n].ID, drafts[n+1].ID, false)
			return err
		})
	}
	all.Wait()
	if plans.Load() < rotations {
		t.Errorf("only %d plans", plans.Load())
	}
}
