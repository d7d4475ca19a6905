package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/torture/ledger"
)

// tries is how often a client asks for the same thing before it gives up.
const tries = 3

// client sends requests as a program would that does not give up at once.
type client struct {
	*fixture
	random *rand.Rand
	apiKey string
	number int
	count  int
}

func (c *client) run(ctx context.Context) {
	// A request that was begun is waited for: its answer counts.
	whole := context.WithoutCancel(ctx)
	for ctx.Err() == nil {
		c.count++
		switch n := c.random.IntN(10); {
		case n < 3:
			c.createOnce(whole)
		case n < 5:
			c.ask(whole, c.order(ledger.Order{}))
		case n < 6:
			c.forbidden(whole)
		case n < 8:
			c.delete(whole)
		case n < 9:
			c.steal(whole)
		default:
			c.read(whole)
		}
	}
}

func (c *client) ask(ctx context.Context, o *ledger.Order) { c.fixture.ask(ctx, o, o.Body()) }

// order is one for the client, with a name of its own.
func (c *client) order(o ledger.Order) *ledger.Order {
	o.Name = fmt.Sprintf("order-%d-%d", c.number, c.count)
	if o.APIKey == "" {
		o.APIKey = c.apiKey
	}
	if o.Workspace == "" {
		o.Workspace = c.account.Workspaces[c.random.IntN(len(c.account.Workspaces))]
	}
	o.Provider = []string{"openai", "anthropic", "mistral"}[c.random.IntN(3)]
	return c.ledger.Order(o)
}

// createOnce repeats a create until it gets its 201.
func (c *client) createOnce(ctx context.Context) {
	o := c.order(ledger.Order{IdempotencyKey: fmt.Sprintf("%s-%d-%d", testkit.Marker, c.number, c.count)})
	for range tries {
		if c.ask(ctx, o); o.Done() {
			return
		}
	}
}

// forbidden asks for what must be refused.
func (c *client) forbidden(ctx context.Context) {
	o := ledger.Order{Forbidden: true}
	if c.random.IntN(2) == 0 {
		o.IdempotencyKey = fmt.Sprintf("%s-%d-%d", testkit.Marker, c.number, c.count)
	}
	extra := map[string]any{}
	switch c.random.IntN(5) {
	case 0:
		o.APIKey = c.standard.Token
	case 1:
		o.APIKey = "sbx_nobody"
	case 2:
		o.Workspace = c.elsewhere
	case 3:
		extra["models"] = []string{}
	default:
		extra["allowed_api_key_hashes"] = []string{string(c.stranger.Hash)}
	}
	made := c.order(o)
	body := made.Body()
	for name, value := range extra {
		body[name] = value
	}
	c.fixture.ask(ctx, made, body)
}

// delete deletes the next file, more often than not until an answer comes.
func (c *client) delete(ctx context.Context) {
	f := c.nextFile()
	if f == nil {
		return
	}
	for range 1 + c.random.IntN(tries) {
		a := c.remove(ctx, c.apiKey, f)
		if f.Answered(a); !a.Uncertain() {
			return
		}
	}
}

// steal asks for a file that belongs to somebody else.
func (c *client) steal(ctx context.Context) {
	f := c.nextFile()
	if f == nil {
		return
	}
	if a := c.remove(ctx, c.stranger.Token, f); a.Status == http.StatusOK {
		c.ledger.Breach("%s was deleted by a stranger", f.ID)
	}
}

func (c *client) nextFile() *ledger.File {
	if n := int(c.next.Add(1)); n <= len(c.files) {
		return c.files[n-1]
	}
	return nil
}

// read asks for a job that is there.
func (c *client) read(ctx context.Context) {
	c.requests.Add(1)
	a, err := c.caller.Job(ctx, c.apiKey, string(c.job))
	c.check(a, err)
	if a.Status != http.StatusOK && !a.Uncertain() && !(c.overloaded && a.Status == http.StatusTooManyRequests) {
		c.ledger.Breach("a job that is there was answered with %d", a.Status)
	}
}
