package main

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"signalbox.dev/infra/local/child/childtest"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/client"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

const (
	clients = 6
	// patience bounds how long a repeated request may get a 500.
	patience = time.Minute
)

// load is what the clients of one account have asked for, with the status of each response.
type load struct {
	kit.Tenant
	stack  *kit.Stack
	client *client.Client

	mu      sync.Mutex
	creates map[string]int   // by the credential's name; 0 if no response came
	files   map[ids.File]int // of the deletion; 201 if the file is uploaded and stays
}

// newLoad makes an account for clients of the running server with this state.
func newLoad(t *testing.T, state string) *load {
	t.Helper()
	l := &load{creates: map[string]int{}, files: map[ids.File]int{}}
	l.connect(t, state)
	l.Tenant = kit.NewTenant(t, auth.NewRegistry(l.stack.DynamoDB, l.stack.Access))
	return l
}

// connect makes the load use the running server with this state.
func (l *load) connect(t *testing.T, state string) {
	t.Helper()
	stack, err := kit.OpenStack(t.Context(), filepath.Join(state, "stack.json"))
	kit.Must(t, err)
	l.stack, l.client = stack, client.New(stack.BaseURL, clients)
}

// keyOf is the provider key of the credential with the name.
func keyOf(name string) string { return "sk-" + kit.Marker + "-" + name }

// create asks for a credential. Its name is the idempotency key.
func (l *load) create(name string) client.Request {
	provider := "openai"
	if strings.HasSuffix(name, "bad") {
		provider = "none"
	}
	body := fmt.Sprintf(`{"key":%q,"provider":%q,"name":%q,"workspace_id":%q}`, keyOf(name), provider, name, l.Workspace)
	return l.client.Post(body).Idempotent(name).As(l.Management)
}

func (l *load) delete(f ids.File) client.Request {
	return l.client.Delete(string(f)).In(string(l.Workspace)).As(l.Management)
}

// act sends requests until one fails, because everything was killed. The context ends then,
// too: the SDK would go on trying.
func (l *load) act(ctx context.Context, t *testing.T, worker int, answered func()) {
	for i := 0; ; i++ {
		name, f := fmt.Sprintf("%d-%d", worker, i), ids.NewFile()
		if i%5 == 4 {
			name += "-bad"
		}
		created, _ := l.create(name).Send(ctx) // without a response the status is 0
		l.note(func() { l.creates[name] = created.Status })
		err := files.NewManager(l.stack.S3, l.stack.Files).Upload(ctx, l.Workspace, f, strings.NewReader("content"), "text/plain")
		if created.Status == 0 || created.Status >= http.StatusInternalServerError || err != nil {
			return
		}
		answered()
		status := http.StatusCreated
		if i%2 == 0 {
			deleted, _ := l.delete(f).Send(ctx)
			if status = deleted.Status; status >= http.StatusBadRequest && status < http.StatusInternalServerError {
				t.Errorf("deleting %s got %d %s", f, status, deleted.Body)
			}
		}
		l.note(func() { l.files[f] = status })
	}
}

func (l *load) note(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// finish repeats a request without a certain response until one comes, and returns its status.
func finish(t *testing.T, r client.Request, status int) int {
	t.Helper()
	for end := time.Now().Add(patience); status == 0 || status >= http.StatusInternalServerError; {
		a, _ := r.Send(t.Context())
		if status = a.Status; time.Now().After(end) {
			t.Fatalf("%s %s: %d %s", r.Method, r.Path, a.Status, a.Body)
		}
	}
	return status
}

// mustBeStored compares the responses with what is stored. A request that got none is
// repeated first.
func (l *load) mustBeStored(t *testing.T) {
	t.Helper()
	for name, status := range l.creates {
		l.creates[name] = finish(t, l.create(name), status)
	}
	stored, places := map[string]int{}, map[int64]bool{}
	for _, c := range kit.Credentials(t, kit.Rows{DB: l.stack.DynamoDB, Table: l.stack.Credentials}.Of(t, "workspace#"+string(l.Workspace))) {
		plain, err := c.Open(t.Context(), seal.NewOpener(l.stack.KMS, l.stack.SealingKey))
		if err != nil || string(plain.Reveal()) != keyOf(c.Name) || places[c.SortOrder] {
			t.Errorf("%s opens to another key than the one that was sent, or shares the position %d: %v", c.Name, c.SortOrder, err)
		}
		stored[c.Name]++
		places[c.SortOrder] = true
	}
	for name, status := range l.creates {
		if want := map[int]int{http.StatusCreated: 1}[status]; stored[name] != want || strings.HasSuffix(name, "bad") != (status == http.StatusBadRequest) {
			t.Errorf("%s got %d and is stored %d times", name, status, stored[name])
		}
		delete(stored, name)
	}
	if len(stored) > 0 || len(places) == 0 {
		t.Errorf("%d credentials are stored, and these were not asked for: %v", len(places), stored)
	}
	for f, status := range l.files {
		l.files[f] = finish(t, l.delete(f), status)
		found := l.stack.Bucket().Look(t, files.Key(l.Workspace, f))
		if status == http.StatusCreated && found.Visible == 0 || status != http.StatusCreated && found.Left > 0 {
			t.Errorf("%s got %d, and then %d: %+v", f, status, l.files[f], found)
		}
	}
}

// Everything is killed while clients create credentials, and upload and delete files. Each
// acknowledged change is stored after the next start, and no refused one is. A change
// without a response is whole or absent: repeated, it succeeds once.
func TestAKillLosesNothing(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	limits := []string{"-param", "DeleteRatePerMinute=100000", "-param", "DeleteBurst=100000", "-param", "ReadsPerSecond=100000", "-param", "CreatesPerSecond=100000", "-param", "DeletesPerSecond=100000"}
	var loads []*load
	next := func() *exec.Cmd {
		cmd, _ := start(t, state, limits...)
		for _, l := range loads {
			l.connect(t, state)
			l.mustBeStored(t)
		}
		return cmd
	}
	for _, responses := range []int64{10, 40, 90} {
		cmd := next()
		l := newLoad(t, state)
		loads = append(loads, l)
		ctx, killed := context.WithCancel(t.Context())
		var count atomic.Int64
		var all sync.WaitGroup
		for worker := range clients {
			all.Go(func() {
				l.act(ctx, t, worker, func() {
					if count.Add(1) != responses {
						return
					}
					for _, pid := range append(childtest.Of(t, cmd.Process.Pid), cmd.Process.Pid) {
						_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
					}
					killed()
				})
			})
		}
		all.Wait()
		killed()
		_ = cmd.Process.Kill() // on a busy machine a worker ends at a 500, perhaps each of them
		_ = cmd.Wait()
	}
	_ = next()
}
