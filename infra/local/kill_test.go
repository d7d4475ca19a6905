package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"signalbox.dev/infra/local/child/childtest"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/client"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// Everything is killed while clients create credentials and delete files. After the
// next start each acknowledged change is stored. A request without a response is repeated, and
// is then carried out once.
func TestAKillLosesNothing(t *testing.T) {
	t.Parallel()
	const clients, answers = 6, 60
	state := filepath.Join(t.TempDir(), "state")
	var c *client.Client
	var stack *kit.Stack
	connect := func() {
		var err error
		stack, err = kit.OpenStack(t.Context(), filepath.Join(state, "stack.json"))
		kit.Must(t, err)
		c = client.New(stack.BaseURL, clients)
	}
	cmd, _ := start(t, state, "-param", "DeleteRatePerMinute=100000", "-param", "DeleteBurst=100000")
	connect()
	tenant := kit.NewTenant(t, auth.NewRegistry(stack.DynamoDB, stack.Access))
	keyOf := func(name string) string { return "sk-" + kit.Marker + "-" + name }
	create := func(name string) client.Request {
		body := fmt.Sprintf(`{"key":%q,"provider":"openai","name":%q,"workspace_id":%q}`, keyOf(name), name, tenant.Workspace)
		return c.Post(body).Idempotent(name).As(tenant.Management)
	}
	remove := func(f ids.File) client.Request {
		return c.Delete(string(f)).In(string(tenant.Workspace)).As(tenant.Management)
	}

	var mu sync.Mutex
	credentials, deletions := map[string]bool{}, map[ids.File]bool{} // true if it was acknowledged
	kill := sync.OnceFunc(func() {
		for _, pid := range append(childtest.Of(t, cmd.Process.Pid), cmd.Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
		}
	})
	note := func(change func()) {
		mu.Lock()
		defer mu.Unlock()
		if change(); len(credentials)+len(deletions) >= answers {
			kill()
		}
	}
	var all sync.WaitGroup
	for worker := range clients {
		all.Go(func() {
			for i := 0; ; i++ {
				name, f := fmt.Sprintf("%d-%d", worker, i), ids.NewFile()
				created, err := create(name).Send(t.Context())
				note(func() { credentials[name] = created.Status == http.StatusCreated })
				if err != nil {
					return
				}
				if files.NewManager(stack.S3, stack.Files).Upload(t.Context(), tenant.Workspace, f, strings.NewReader("content"), "text/plain") != nil {
					return
				}
				deleted, _ := remove(f).Send(t.Context()) // without a response the status is 0
				note(func() { deletions[f] = deleted.Status == http.StatusOK })
			}
		})
	}
	all.Wait()
	kill() // on a very busy machine each worker may have ended at an error
	_ = cmd.Wait()

	_, _ = start(t, state)
	connect()
	repeat := func(r client.Request, finished ...int) {
		for end := time.Now().Add(time.Minute); ; {
			got, _ := r.Send(t.Context())
			for _, status := range finished {
				if got.Status == status {
					return
				}
			}
			if time.Now().After(end) {
				t.Fatalf("%s %s, repeated: %d %s", r.Method, r.Path, got.Status, got.Body)
			}
		}
	}
	for name, acknowledged := range credentials {
		if !acknowledged {
			repeat(create(name), http.StatusCreated)
		}
	}
	for f, acknowledged := range deletions {
		if !acknowledged {
			repeat(remove(f), http.StatusOK, http.StatusNotFound)
		}
		if found := stack.Bucket().Look(t, files.Key(tenant.Workspace, f)); found.Left > 0 {
			t.Errorf("a deleted file: %+v", found)
		}
	}
	places := map[int64]bool{}
	kept, err := byok.ReadAll(t.Context(), stack.DynamoDB, stack.Credentials, tenant.ID, tenant.Workspace)
	kit.Must(t, err)
	for _, stored := range kept {
		plain, err := seal.NewOpener(stack.KMS, stack.SealingKey).Open(t.Context(), stored.Sealed, stored.Binding())
		if _, asked := credentials[stored.Name]; !asked || err != nil || string(plain.Reveal()) != keyOf(stored.Name) || places[stored.SortOrder] {
			t.Errorf("%s is stored twice, opens to another key than the one that was sent, or has another's position: %v", stored.Name, err)
		}
		delete(credentials, stored.Name)
		places[stored.SortOrder] = true
	}
	if len(credentials) > 0 {
		t.Errorf("acknowledged, and not stored: %v", credentials)
	}
}
