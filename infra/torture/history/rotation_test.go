package history_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/torture/service"
	"signalbox.dev/infra/torture/world"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

// rotations is how often the key is rotated while four routers plan requests.
const rotations = 25

// TestRotationLeavesNoGap rotates one key again and again. Every plan made meanwhile
// must be one that a rotation leaves, and never empty.
func TestRotationLeavesNoGap(t *testing.T) {
	s, err := service.Start(t.Context(), service.Config{Root: "../../..", State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	stack := s.Stack()
	account, err := world.NewAccount(t.Context(), stack, 1)
	if err != nil {
		t.Fatal(err)
	}
	r := &rotation{account: account, stack: stack, began: time.Now()}
	current := r.create(t, 0)
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for client := range 4 {
		readers.Go(func() { r.read(ctx, t, client+1) })
	}
	manager := byok.NewManager(stack.DynamoDB, stack.Credentials)
	for n := range rotations {
		next := r.create(t, int64(n+1))
		r.record(0, rotationStep{remove: current, add: next}, func() {
			if err := manager.Supersede(t.Context(), account.Workspaces[0], current, next, false); err != nil {
				t.Error(err)
			}
		})
		current = next
	}
	stop()
	readers.Wait()
	if verdict := porcupine.CheckOperations(rotationModel(), r.all); !verdict {
		t.Error("the plans are not those of any order of the rotations")
	}
	if len(r.all) < 3*rotations {
		t.Errorf("only %d operations", len(r.all))
	}
}

type rotation struct {
	account world.Account
	stack   *testkit.Stack
	began   time.Time

	mu  sync.Mutex
	all []porcupine.Operation
}

// rotationStep is one operation: a create (add), a rotation (both), or a plan.
type rotationStep struct {
	remove, add ids.Credential
	plan        string
}

// record runs an operation and notes when it was begun and when it ended.
func (r *rotation) record(client int, step rotationStep, run func()) {
	call := time.Since(r.began)
	run()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, porcupine.Operation{ClientId: client, Input: step, Call: int64(call), Return: int64(time.Since(r.began))})
}

func (r *rotation) create(t *testing.T, place int64) ids.Credential {
	t.Helper()
	store := byok.NewStore(r.stack.DynamoDB, r.stack.Credentials, r.stack.Control, seal.NewSealer(r.stack.KMS, r.stack.SealingKey))
	draft, err := store.Seal(t.Context(), r.account.ID, r.account.Workspaces[0], byok.New{
		Settings: byok.Settings{Provider: "openai"}, Key: secret.New([]byte("sk-rotated")),
	})
	if err != nil {
		t.Fatal(err)
	}
	draft.SortOrder = place
	r.record(0, rotationStep{add: draft.ID}, func() {
		if err := store.Create(t.Context(), draft); err != nil {
			t.Error(err)
		}
	})
	return draft.ID
}

// read plans requests until the context is done.
func (r *rotation) read(ctx context.Context, t *testing.T, client int) {
	reader, err := routing.NewReader(r.stack.DynamoDB, r.stack.KMS, routing.Config{
		AccessTable: r.stack.Access, CredentialsTable: r.stack.Credentials, SealingKeyARNs: []string{r.stack.SealingKey},
	})
	if err != nil {
		t.Error(err)
		return
	}
	for ctx.Err() == nil {
		call := time.Since(r.began)
		reading, err := reader.Read(t.Context(), r.account.ID, r.account.Workspaces[0], routing.Request{Providers: []string{"openai"}})
		if err != nil {
			t.Error(err)
			return
		}
		var plan []string
		for _, step := range reading.Steps {
			if !step.IsShared() {
				plan = append(plan, string(step.Credential))
			}
		}
		r.mu.Lock()
		r.all = append(r.all, porcupine.Operation{
			ClientId: client, Input: rotationStep{plan: fmt.Sprint(plan)}, Call: int64(call), Return: int64(time.Since(r.began)),
		})
		r.mu.Unlock()
	}
}

// rotationModel: the usable credentials in their order, as one string.
func rotationModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return "" },
		Step: func(state, input, _ any) (bool, any) {
			usable, step := strings.Fields(state.(string)), input.(rotationStep)
			switch {
			case step.plan != "":
				return len(usable) > 0 && fmt.Sprint(usable) == step.plan, state
			case step.remove == "":
				return true, strings.Join(append(usable, string(step.add)), " ")
			default: // the new one takes the old one's place
				usable = slices.DeleteFunc(usable, func(id string) bool { return id == string(step.add) })
				usable[slices.Index(usable, string(step.remove))] = string(step.add)
				return true, strings.Join(usable, " ")
			}
		},
	}
}
