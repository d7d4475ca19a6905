package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"

	"signalbox.dev/infra/torture/ledger"
)

// tries is how often a client asks for the same thing before it gives up.
const tries = 3

// client sends requests as a program would that does not give up at once.
type client struct {
	*scene
	random *rand.Rand
	apiKey string
	number int
	count  int
}

func (x *client) run(ctx context.Context) {
	// A request that was begun is waited for: its answer counts.
	whole := context.WithoutCancel(ctx)
	for ctx.Err() == nil {
		x.count++
		switch n := x.random.IntN(10); {
		case n < 3:
			x.createOnce(whole)
		case n < 5:
			x.ask(whole, x.order(ledger.Order{}))
		case n < 6:
			x.forbidden(whole)
		case n < 8:
			x.delete(whole)
		case n < 9:
			x.steal(whole)
		default:
			x.read(whole)
		}
	}
}

func (x *client) ask(ctx context.Context, o *ledger.Order) { x.scene.ask(ctx, o, o.Body()) }

// order is one for the client, with a name of its own.
func (x *client) order(o ledger.Order) *ledger.Order {
	o.Name = fmt.Sprintf("order-%d-%d", x.number, x.count)
	if o.APIKey == "" {
		o.APIKey = x.apiKey
	}
	if o.Workspace == "" {
		o.Workspace = x.account.Workspaces[x.random.IntN(len(x.account.Workspaces))]
	}
	o.Provider = []string{"openai", "anthropic", "mistral"}[x.random.IntN(3)]
	return x.ledger.Order(o)
}

// createOnce asks until it is told that there is a credential.
func (x *client) createOnce(ctx context.Context) {
	o := x.order(ledger.Order{IdempotencyKey: fmt.Sprintf("%s-%d-%d", ledger.Marker, x.number, x.count)})
	for range tries {
		if x.ask(ctx, o); o.Done() {
			return
		}
	}
}

// forbidden asks for what nobody may have.
func (x *client) forbidden(ctx context.Context) {
	o := ledger.Order{Forbidden: true}
	if x.random.IntN(2) == 0 {
		o.IdempotencyKey = fmt.Sprintf("%s-%d-%d", ledger.Marker, x.number, x.count)
	}
	extra := map[string]any{}
	switch x.random.IntN(5) {
	case 0:
		o.APIKey = x.standard.Token
	case 1:
		o.APIKey = "sbx_nobody"
	case 2:
		o.Workspace = x.elsewhere
	case 3:
		extra["models"] = []string{}
	default:
		extra["allowed_api_key_hashes"] = []string{string(x.stranger.Hash)}
	}
	made := x.order(o)
	body := made.Body()
	for name, value := range extra {
		body[name] = value
	}
	x.scene.ask(ctx, made, body)
}

// delete deletes the next file, more often than not until an answer comes.
func (x *client) delete(ctx context.Context) {
	f := x.nextFile()
	if f == nil {
		return
	}
	for range 1 + x.random.IntN(tries) {
		a := x.remove(ctx, x.apiKey, f)
		if f.Told(a); !a.Uncertain() {
			return
		}
	}
}

// steal asks for a file that belongs to somebody else.
func (x *client) steal(ctx context.Context) {
	f := x.nextFile()
	if f == nil {
		return
	}
	if a := x.remove(ctx, x.stranger.Token, f); a.Status == http.StatusOK {
		x.ledger.Breach("%s was deleted by a stranger", f.ID)
	}
}

func (x *client) nextFile() *ledger.File {
	if n := int(x.next.Add(1)); n <= len(x.files) {
		return x.files[n-1]
	}
	return nil
}

// read asks for a job that is there.
func (x *client) read(ctx context.Context) {
	x.requests.Add(1)
	a, err := x.caller.Job(ctx, x.apiKey, string(x.job))
	if err != nil {
		x.ledger.Breach("%v", err)
	}
	if a.Status != http.StatusOK && !a.Uncertain() {
		x.ledger.Breach("a job that is there was answered with %d", a.Status)
	}
}
