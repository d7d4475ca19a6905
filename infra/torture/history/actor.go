package history

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/client"
	"signalbox.dev/shared/auth"
)

// actor is a client that does one action after the other.
type actor struct {
	*round
	random *rand.Rand
	number int
	acted  int
	// rough is true while processes are killed or overloaded.
	rough bool

	// An action that is under way when the edition is killed ends with it.
	stack *testkit.Stack
	ctx   context.Context
}

func (x *actor) act() {
	x.acted++
	x.stack, x.ctx = x.service.Stack()
	workspace := x.random.IntN(workspaces)
	switch n := x.random.IntN(100); {
	case n < 16:
		x.create(workspace)
	case n < 34:
		x.createOnce(x.random.IntN(keys), x.random.IntN(onceKeys), x.random.IntN(4)/3)
	case n < 38:
		x.createForbidden(workspace)
	case n < 56:
		x.deleteAs(x.anyKey(), x.file())
	case n < 63:
		x.upload(x.file())
	case n < 67:
		x.head(x.file())
	case n < 76:
		x.list(workspace)
	case n < 84:
		x.read()
	case n < 88:
		x.step()
	case n < 94:
		x.setKey()
	case n < 97:
		x.deleteWorkspace(workspace)
	default:
		x.setDefault(workspace)
	}
	x.count(&x.Operations)
}

func (x *actor) key() string { return x.keys[x.random.IntN(keys)] }

// anyKey is sometimes a key of one workspace only, or of another account.
func (x *actor) anyKey() string {
	switch x.random.IntN(8) {
	case 0, 1:
		return x.bound
	case 2:
		return x.stranger
	default:
		return x.key()
	}
}

func (x *actor) file() fileAt { return x.files[x.random.IntN(len(x.files))] }

func (x *actor) provider() string { return providers[x.random.IntN(len(providers))] }

// shown records what an operation showed that has just ended.
func (x *actor) shown(call int64, shown ...event) { x.note(x.number, call, x.now(), shown...) }

// retried records that a retry of the SDK may have done an operation again.
func (x *actor) retried(call int64, again event) {
	if x.rough {
		x.shown(call, again)
	}
}

// unsure records an operation that may have taken effect, or may yet.
func (x *actor) unsure(call int64, perhaps ...event) {
	x.note(x.number, call, never, perhaps...)
	x.note(x.number, call, never, perhaps...) // a retry of the SDK
	x.count(&x.Uncertain)
	if !x.rough {
		x.violation("%v: no certain response, although nothing was killed", perhaps)
	}
}

// certain sends the request and reports whether the response shows something for
// the caller to record. It records one that is missing or a 500, a 401, and one that
// breaks the contract in any history.
func (x *actor) certain(call int64, by string, q client.Request, perhaps ...event) (client.Response, bool) {
	a, _ := q.As(by).Send(x.ctx) // without a response, the status is 0
	if a.Status >= http.StatusBadRequest {
		if _, err := a.Failure(); err != nil {
			x.violation("%v", err)
		}
	}
	switch {
	case a.Status == 0 || a.Status >= http.StatusInternalServerError:
		x.unsure(call, perhaps...)
		if a.Status == 0 && !x.Kill {
			x.violation("there was no response, although nothing was killed")
		}
	case a.Status == http.StatusTooManyRequests:
		x.count(&x.Throttled)
		if x.Throttle == 0 {
			x.violation("a request far below its limit was refused")
		}
	case a.Status == http.StatusUnauthorized:
		x.shown(call, keyRefused(by))
	default:
		return a, true
	}
	return a, false
}

// request is a create.
type request struct {
	by       string
	name     string
	provider string
	// workspace is the one that is named; "" means the default.
	workspace string
	// once is the idempotency key with the API key that it belongs to; header is
	// what is sent of it.
	once, header string
}

// secretOf is the provider key of the credential with the name.
func secretOf(name string) string { return "sk-" + testkit.Marker + "-" + name }

// create creates a credential of its own, mostly in a workspace that it names.
func (x *actor) create(workspace int) {
	q := request{by: x.key(), name: fmt.Sprintf("%d-%d", x.number, x.acted), provider: x.provider()}
	if x.random.IntN(4) > 0 {
		q.workspace = string(x.workspaces[workspace])
	}
	x.send(q)
}

// createOnce creates under an idempotency key that others use too, for the same
// request or, with another variant, another one.
func (x *actor) createOnce(k, number, variant int) {
	once := fmt.Sprintf("once-%d-%d", k, number)
	x.send(request{
		by: x.keys[k], name: fmt.Sprintf("%s-%d", once, variant), provider: providers[number%len(providers)],
		workspace: string(x.workspaces[number%workspaces]), once: once, header: fmt.Sprintf("%s-%d", testkit.Marker, number),
	})
}

// createForbidden sends a create that must be refused: finish lists what is stored.
func (x *actor) createForbidden(workspace int) {
	q := request{by: x.key(), name: fmt.Sprintf("forbidden-%d-%d", x.number, x.acted), provider: x.provider(), workspace: string(x.workspaces[workspace])}
	body := q.body()
	switch x.random.IntN(4) {
	case 0:
		q.by = x.bound
	case 1:
		q.by = "sbx_unknown"
	case 2:
		body["models"] = []string{}
	default:
		body["allowed_api_key_hashes"] = []string{string(auth.HashKey(x.stranger))}
	}
	x.asked(q.name, q.workspace)
	if a, _ := x.post(q, body).As(q.by).Send(x.ctx); a.Status == http.StatusCreated {
		x.violation("%s was accepted", q.name)
	}
}

func (q request) body() map[string]any {
	body := map[string]any{"key": secretOf(q.name), "provider": q.provider, "name": q.name}
	if q.workspace != "" {
		body["workspace_id"] = q.workspace
	}
	return body
}

func (x *actor) post(q request, body map[string]any) client.Request {
	text, _ := json.Marshal(body) // text and booleans encode
	r := x.client.Post(string(text))
	if q.header != "" {
		r = r.Idempotent(q.header)
	}
	return r
}

func (x *actor) send(q request) {
	x.asked(q.name, q.workspace)
	call, perhaps := x.now(), []event{credentialPerhaps(q.name)}
	if q.once != "" {
		perhaps = append(perhaps, oncePerhaps(q.once, q.name))
	}
	switch a, certain := x.certain(call, q.by, x.post(q, q.body()), perhaps...); {
	case !certain:
	case a.Status == http.StatusCreated:
		x.created(call, q, a)
	case a.Status == http.StatusBadRequest:
		x.refused(call, q, a)
	default:
		x.violation("a create got %d", a.Status)
	}
}

func (x *actor) created(call int64, q request, a client.Response) {
	c, err := a.Credential()
	if err != nil || c.Name != q.name || c.Provider != q.provider || q.workspace != "" && c.Workspace != q.workspace {
		x.violation("%+v got %s", q, a.Body)
		return
	}
	x.asked(q.name, c.Workspace)
	what := stored(c.ID, c.SortOrder)
	shown := []event{keyLetIn(q.by)}
	if a.Header.Get("Idempotent-Replayed") != "" {
		replayed := onceReplayed
		if x.rough {
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
func (x *actor) refused(call int64, q request, a client.Response) {
	shown := []event{keyLetIn(q.by)}
	switch issues := a.Issues(); {
	case slices.Equal(issues, []string{"/workspace_id"}):
		if q.workspace != "" {
			shown = append(shown, workspaceGone(q.workspace))
		}
		if q.once != "" {
			shown = append(shown, onceRefused(q.once, q.name))
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
