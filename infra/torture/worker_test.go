package torture

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/client"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
)

// worker is one client of the service. Nobody else changes its objects, so it can
// predict each response and the storage. All workers of a group share the workspace.
type worker struct {
	*storm
	*group
	random *rand.Rand
	name   string
	acts   int
	stack  *testkit.Stack
	ctx    context.Context // ends with the process of the edition

	creates []*create
	files   []*file
}

// state is a worker's knowledge of an object.
type state int

const (
	no state = iota
	yes
	unknown // an act got no response
)

// create is a request for a credential.
type create struct {
	name string
	once bool // with the name as idempotency key
	bad  bool // must be refused
	// stored is the credential of the 201; "" if there was none.
	stored string
	// perhaps means that an attempt got no response.
	perhaps bool
}

// file is a file that only one worker uploads and deletes.
type file struct {
	id     ids.File
	exists state
}

func (x *worker) act() {
	x.acts++
	x.stack, x.ctx = x.service.Stack()
	switch n := x.random.IntN(100); {
	case n < 35:
		x.creates = append(x.creates, &create{name: fmt.Sprintf("%s-%d", x.name, x.acts), once: n < 24, bad: n >= 30})
		x.send(x.creates[len(x.creates)-1])
	case n < 45 && len(x.creates) > 0:
		if c := x.creates[x.random.IntN(len(x.creates))]; c.once {
			x.send(c)
		}
	case n < 60:
		x.upload()
	case n < 85 && len(x.files) > 0:
		x.delete(x.files[x.random.IntN(len(x.files))])
	default:
		x.read()
	}
	x.Acts.Add(1)
}

// ask sends the request and reports whether the response is certain: neither missing nor
// a 500 nor a 429.
func (x *worker) ask(q client.Request) (client.Response, bool) {
	a, _ := q.As(x.tenant.Management).Send(x.ctx) // without a response, the status is 0
	if a.Status >= http.StatusBadRequest {
		if _, err := a.Failure(); err != nil {
			x.violation("%v", err)
		}
	}
	switch {
	case a.Status == http.StatusTooManyRequests:
		x.Throttled.Add(1)
		return a, false
	case a.Status == 0 && !x.Kill, a.Status >= http.StatusInternalServerError && !x.rough():
		x.violation("%s got %d, although nothing was killed", q.Path, a.Status)
	case a.Status == 0 || a.Status >= http.StatusInternalServerError:
		x.Uncertain.Add(1)
	}
	return a, a.Status > 0 && a.Status < http.StatusInternalServerError
}

// keyOf is the provider key of the credential with the name.
func keyOf(name string) string { return "sk-" + testkit.Marker + "-" + name }

func (x *worker) send(c *create) {
	body := map[string]any{"key": keyOf(c.name), "provider": "openai", "name": c.name, "workspace_id": x.tenant.Workspace}
	if c.bad {
		body["allowed_api_key_hashes"] = []string{string(auth.HashKey("nobody's"))}
	}
	text, _ := json.Marshal(body) // texts encode
	q := x.client.Post(string(text))
	if c.once {
		q = q.Idempotent(c.name)
	}
	switch a, certain := x.ask(q); {
	case !certain:
		c.perhaps = c.perhaps || a.Status != http.StatusTooManyRequests
	case a.Status == http.StatusCreated && !c.bad:
		made, err := a.Credential()
		again := a.Header.Get("Idempotent-Replayed") != ""
		stored := fmt.Sprintf("%s at %d", made.ID, made.SortOrder)
		if err != nil || made.Name != c.name || c.stored != "" && (c.stored != stored || !again) || c.stored == "" && again && !x.rough() {
			x.violation("%s was created as %q; then the service responded, replayed %t: %s", c.name, c.stored, again, a.Body)
		}
		c.stored = cmp.Or(c.stored, stored)
	case a.Status != http.StatusBadRequest || !c.bad:
		x.violation("creating %s got %d %s", c.name, a.Status, a.Body)
	}
}

func (x *worker) upload() {
	f := &file{id: ids.NewFile(), exists: unknown}
	x.files = append(x.files, f)
	store := files.NewManager(x.stack.S3, x.stack.Files)
	err := store.Upload(x.ctx, x.tenant.Workspace, f.id, strings.NewReader(string(f.id)), "text/plain")
	// A retry of the SDK finds the file of its first attempt.
	if err == nil || errors.Is(err, files.ErrExists) && x.rough() {
		f.exists = yes
	} else if !x.rough() {
		x.violation("uploading %s: %v", f.id, err)
	}
}

func (x *worker) delete(f *file) {
	switch a, certain := x.ask(x.client.Delete(string(f.id)).In(string(x.tenant.Workspace))); {
	case !certain:
		if a.Status != http.StatusTooManyRequests && f.exists == yes {
			f.exists = unknown
		}
	case a.Status == http.StatusOK && f.exists != no, a.Status == http.StatusNotFound && (f.exists != yes || x.rough()):
		f.exists = no
	default:
		x.violation("deleting %s, in state %d, got %d %s", f.id, f.exists, a.Status, a.Body)
	}
}

// read reads the group's sync job, which is queued.
func (x *worker) read() {
	a, certain := x.ask(x.client.Get(string(x.job)))
	if certain && (a.Status != http.StatusOK || !strings.Contains(string(a.Body), `"status":"queued"`)) {
		x.violation("a queued job got %d %s", a.Status, a.Body)
	}
}

// settle repeats each request that got no response until it gets one, and looks at all
// objects again.
func (x *worker) settle(t testing.TB) {
	t.Helper()
	x.stack, x.ctx = x.service.Stack()
	for _, c := range x.creates {
		for deadline := time.Now().Add(time.Minute); c.once && c.perhaps && c.stored == ""; x.send(c) {
			if time.Now().After(deadline) {
				x.violation("creating %s gets no response", c.name)
				break
			}
		}
	}
	for _, f := range x.files {
		for deadline := time.Now().Add(time.Minute); f.exists == unknown && time.Now().Before(deadline); {
			x.delete(f)
		}
		seen := x.stack.Bucket().Look(t, files.Key(x.tenant.Workspace, f.id))
		if (seen.Visible > 0) != (f.exists == yes) || f.exists == no && seen.Left > 0 {
			x.violation("%s was deleted: %t; it can be read: %t, and has %d versions", f.id, f.exists == no, seen.Visible > 0, seen.Left)
		}
	}
}
