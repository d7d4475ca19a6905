package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"

	"signalbox.dev/infra/torture/service"
)

// client does one action after the other.
type client struct {
	*round
	random *rand.Rand
	number int
	count  int
}

func (x *client) act(ctx context.Context) {
	x.count++
	workspace := x.random.IntN(workspaces)
	switch n := x.random.IntN(100); {
	case n < 18:
		x.create(ctx, workspace)
	case n < 36:
		x.createOnce(ctx)
	case n < 54:
		x.delete(ctx)
	case n < 62:
		x.upload(ctx, x.file())
	case n < 66:
		x.head(ctx, x.file())
	case n < 76:
		x.list(ctx, workspace)
	case n < 84:
		x.read(ctx)
	case n < 88:
		x.step(ctx)
	case n < 94:
		x.setKey(ctx)
	case n < 97:
		x.deleteWorkspace(ctx, workspace)
	default:
		x.setDefault(ctx, workspace)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.operations++
}

func (x *client) key() service.Key { return x.keys[x.random.IntN(len(x.keys))] }

func (x *client) file() fileAt { return x.files[x.random.IntN(len(x.files))] }

func (x *client) provider() string { return providers[x.random.IntN(len(providers))] }

// shown records what an operation showed that has just ended.
func (x *client) shown(call int64, shown ...event) { x.note(x.number, call, x.now(), shown...) }

// retried records that a retry of the SDK may have done an operation again.
func (x *client) retried(call int64, again event) {
	if x.stormy {
		x.shown(call, again)
	}
}

// unsure records an operation that may have taken effect, or may yet.
func (x *client) unsure(call int64, perhaps ...event) {
	x.note(x.number, call, never, perhaps...)
	if x.stormy {
		x.note(x.number, call, never, perhaps...) // a retry of the SDK
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.uncertain++
}

// checkAnswer records a response that breaks the contract in any history.
func (x *client) checkAnswer(a service.Answer, err error) {
	if err != nil {
		x.violation("%v", err)
	}
	if a.Status == http.StatusTooManyRequests {
		x.violation("the limiter refused a request far below its limit")
	}
}

// request is a create.
type request struct {
	by       service.Key
	name     string
	provider string
	// workspace is the one that is named; "" means the default.
	workspace string
	// once is the idempotency key with the API key that it belongs to; header is
	// what is sent of it.
	once, header string
}

// create creates a credential of its own, mostly in a workspace that it names.
func (x *client) create(ctx context.Context, workspace int) {
	q := request{by: x.key(), name: fmt.Sprintf("%d-%d", x.number, x.count), provider: x.provider()}
	if x.random.IntN(4) > 0 {
		q.workspace = string(x.account.Workspaces[workspace])
	}
	x.send(ctx, q)
}

// createOnce creates under an idempotency key that others use too, for the same
// request or another.
func (x *client) createOnce(ctx context.Context) {
	k, number, variant := x.random.IntN(len(x.keys)), x.random.IntN(onceKeys), x.random.IntN(4)/3
	once := fmt.Sprintf("once-%d-%d", k, number)
	x.send(ctx, request{
		by: x.keys[k], name: fmt.Sprintf("%s-%d", once, variant), provider: providers[number%len(providers)],
		workspace: string(x.account.Workspaces[number%workspaces]), once: once, header: fmt.Sprintf("once-%d", number),
	})
}

func (x *client) send(ctx context.Context, q request) {
	body := map[string]any{"key": "sk-" + q.name, "provider": q.provider, "name": q.name}
	if q.workspace != "" {
		body["workspace_id"] = q.workspace
	}
	x.asked(q.name, q.workspace)
	call := x.now()
	a, err := x.client.Create(ctx, q.by.Token, q.header, body)
	x.checkAnswer(a, err)
	switch {
	case a.Uncertain():
		perhaps := []event{credentialPerhaps(q.name)}
		if q.once != "" {
			perhaps = append(perhaps, oncePerhaps(q.once, q.name))
		}
		x.unsure(call, perhaps...)
	case a.Status == http.StatusCreated:
		x.created(call, q, a)
	case a.Status == http.StatusUnauthorized:
		x.shown(call, keyRefused(string(q.by.Hash)))
	case a.Status == http.StatusBadRequest:
		x.refused(call, q, a)
	default:
		x.violation("a create got %d", a.Status)
	}
}

func (x *client) created(call int64, q request, a service.Answer) {
	c, err := a.Credential()
	if err != nil || c.Name != q.name || c.Provider != q.provider || q.workspace != "" && c.Workspace != q.workspace {
		x.violation("%+v got %s", q, a.Body)
		return
	}
	x.asked(q.name, c.Workspace)
	what := stored(c.ID, c.SortOrder)
	shown := []event{keyLetIn(string(q.by.Hash))}
	if a.Replayed() {
		replayed := onceReplayed
		if x.stormy {
			replayed = onceEither
		}
		x.shown(call, append(shown, replayed(q.once, q.name, what), credentialSeen(q.name, what))...)
		return
	}
	shown = append(shown, workspaceLive(c.Workspace), positionTaken(c.Workspace, c.Provider, c.SortOrder), credentialStored(q.name, what))
	if q.once != "" {
		shown = append(shown, onceFirst(q.once, q.name, what))
	}
	if q.workspace == "" {
		shown = append(shown, defaultIs(string(x.account.ID), c.Workspace))
	}
	x.shown(call, shown...)
}

// refused reads a 400: a valid request gets one only where its workspace is
// deleted, or its idempotency key belongs to another request.
func (x *client) refused(call int64, q request, a service.Answer) {
	shown := []event{keyLetIn(string(q.by.Hash))}
	switch issues := a.Issues(); {
	case slices.Equal(issues, []string{"/workspace_id"}):
		if q.workspace != "" {
			shown = append(shown, workspaceGone(q.workspace))
		}
		if q.once != "" {
			shown = append(shown, onceFree(q.once))
		}
	case slices.Equal(issues, []string{""}) && q.once != "":
		shown = append(shown, onceOther(q.once, q.name))
	default:
		x.violation("%+v was refused: %s", q, a.Body)
	}
	x.shown(call, shown...)
}

// stored is a credential as answers and listings show it.
func stored(id string, position int64) string { return fmt.Sprintf("%s at %d", id, position) }
