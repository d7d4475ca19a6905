package crash

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"time"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/torture/ledger"
	"signalbox.dev/infra/torture/service"
	"signalbox.dev/shared/ids"
)

// tries is how often a client sends one request before it gives up.
const tries = 3

// client sends one request after the other.
type client struct {
	*fixture
	random *rand.Rand
	apiKey string
	number int
	count  int
}

func (c *client) run(ctx context.Context) {
	// A request that was begun is waited for: its response counts.
	whole := context.WithoutCancel(ctx)
	for ctx.Err() == nil {
		c.count++
		switch n := c.random.IntN(10); {
		case n < 3:
			c.createOnce(whole)
		case n < 5:
			o := c.order(ledger.Order{})
			c.create(whole, o, o.Body())
		case n < 6:
			c.createForbidden(whole)
		case n < 8:
			c.delete(whole)
		case n < 9:
			c.deleteForeign(whole)
		default:
			c.read(whole)
		}
	}
}

// order completes an order and records it.
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

func (c *client) idempotencyKey() string {
	return fmt.Sprintf("%s-%d-%d", testkit.Marker, c.number, c.count)
}

// createOnce repeats a create until it is accepted.
func (c *client) createOnce(ctx context.Context) {
	o := c.order(ledger.Order{IdempotencyKey: c.idempotencyKey()})
	for range tries {
		if c.create(ctx, o, o.Body()); o.Done() {
			return
		}
	}
}

// createForbidden sends a create that must be refused.
func (c *client) createForbidden(ctx context.Context) {
	o := ledger.Order{Forbidden: true}
	if c.random.IntN(2) == 0 {
		o.IdempotencyKey = c.idempotencyKey()
	}
	extra := map[string]any{}
	switch c.random.IntN(5) {
	case 0:
		o.APIKey = c.standard.Token
	case 1:
		o.APIKey = "sbx_unknown"
	case 2:
		o.Workspace = c.elsewhere
	case 3:
		extra["models"] = []string{}
	default:
		extra["allowed_api_key_hashes"] = []string{string(c.stranger.Hash)}
	}
	order := c.order(o)
	body := order.Body()
	maps.Copy(body, extra)
	c.create(ctx, order, body)
}

// delete deletes the next file, mostly until a response comes.
func (c *client) delete(ctx context.Context) {
	f := c.next()
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

// deleteForeign tries to delete another account's file.
func (c *client) deleteForeign(ctx context.Context) {
	f := c.next()
	if f == nil {
		return
	}
	if a := c.remove(ctx, c.stranger.Token, f); a.Status == http.StatusOK {
		c.ledger.Breach("%s was deleted by another account", f.ID)
	}
}

func (c *client) next() *ledger.File {
	if n := int(c.nextFile.Add(1)); n <= len(c.files) {
		return c.files[n-1]
	}
	return nil
}

func (c *client) read(ctx context.Context) {
	a, err := c.client.Job(ctx, c.apiKey, string(c.job))
	c.check(a, err)
	throttled := c.overloaded && a.Status == http.StatusTooManyRequests
	if a.Status != http.StatusOK && !a.Uncertain() && !throttled {
		c.ledger.Breach("the read of a job got %d", a.Status)
	}
}

// create sends an order, records the response and returns its status.
func (f *fixture) create(ctx context.Context, o *ledger.Order, body map[string]any) int {
	a, err := f.client.Create(ctx, o.APIKey, o.IdempotencyKey, body)
	f.check(a, err)
	o.Answered(a)
	return a.Status
}

// remove sends the delete of a file.
func (f *fixture) remove(ctx context.Context, apiKey string, file *ledger.File) service.Answer {
	a, err := f.client.Delete(ctx, apiKey, string(file.Workspace), string(file.ID))
	f.check(a, err)
	return a
}

// check reports a malformed response and, in overload, a missing one.
func (f *fixture) check(a service.Answer, err error) {
	f.requests.Add(1)
	if err != nil {
		f.ledger.Breach("%v", err)
	}
	if a.Status == http.StatusTooManyRequests {
		f.throttled.Add(1)
	}
	if a.Status == 0 && f.overloaded {
		f.ledger.Breach("an overloaded service did not respond")
	}
}

// exceedLimit deletes an absent file as fast as it can. However often the
// limiter's store is killed, no more may pass than the rate allows.
func (f *fixture) exceedLimit(ctx context.Context) {
	absent := &ledger.File{Workspace: f.account.Workspaces[0], ID: ids.NewFile()}
	passed, began := 0, time.Now()
	for ctx.Err() == nil {
		if a := f.remove(context.WithoutCancel(ctx), f.limited.Token, absent); a.Status == http.StatusNotFound {
			passed++
		}
	}
	// Each request was judged later than began and earlier than now.
	allowed := burst + time.Since(began).Minutes()*ratePerMinute
	if float64(passed) > allowed+1 {
		f.ledger.Breach("the limiter let %d pass, its rate allows %.1f", passed, allowed)
	}
}
