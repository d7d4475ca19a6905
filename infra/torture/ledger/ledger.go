// Package ledger records what clients asked for and which responses they got, and
// compares storage with it: what was acknowledged is stored whole, once; what was
// refused is not; what got no response is stored whole or not at all; nothing
// else is stored.
package ledger

import (
	"fmt"
	"net/http"
	"sync"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/torture/service"
	"signalbox.dev/shared/ids"
)

// Ledger may be used concurrently.
type Ledger struct {
	account ids.Account

	mu     sync.Mutex
	orders map[string]*Order
	files  map[string]*File // by key of the bucket
	broken []string
}

// New returns an empty ledger of an account.
func New(account ids.Account) *Ledger {
	return &Ledger{account: account, orders: make(map[string]*Order), files: make(map[string]*File)}
}

// Order is a credential that a client asks for, once, or repeatedly under one
// idempotency key.
type Order struct {
	Name      string // unique, in storage too
	Workspace ids.Workspace
	Provider  string
	// IdempotencyKey is empty for an order that is sent once.
	IdempotencyKey string
	APIKey         string
	// Forbidden orders must be refused.
	Forbidden bool

	ledger    *Ledger
	first     *service.Answer // the first 201
	uncertain bool
}

// Order records an order before it is sent.
func (l *Ledger) Order(o Order) *Order {
	o.ledger = l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.orders[o.Name] = &o
	return &o
}

// Secret is the provider key of the order.
func (o *Order) Secret() string { return "sk-" + testkit.Marker + "-" + o.Name }

// Body is the body of the request.
func (o *Order) Body() map[string]any {
	return map[string]any{"key": o.Secret(), "provider": o.Provider, "name": o.Name, "workspace_id": o.Workspace}
}

// Answered records a response.
func (o *Order) Answered(a service.Answer) {
	l := o.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case a.Uncertain():
		o.uncertain = true
	case a.Status != http.StatusCreated:
		if !o.Forbidden && a.Status != http.StatusTooManyRequests {
			l.breach("%s is valid and was refused: %s", o.Name, a.Body)
		}
	case o.Forbidden:
		l.breach("%s is forbidden and was accepted: %s", o.Name, a.Body)
	case o.first == nil:
		o.first = &a
	case string(o.first.Body) != string(a.Body):
		l.breach("%s has two responses, %s and %s", o.Name, o.first.Body, a.Body)
	}
}

// Done reports whether the order was accepted.
func (o *Order) Done() bool {
	o.ledger.mu.Lock()
	defer o.ledger.mu.Unlock()
	return o.first != nil
}

// Repeatable returns the orders that may be sent again.
func (l *Ledger) Repeatable() []*Order {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*Order
	for _, o := range l.orders {
		if o.IdempotencyKey != "" && !o.Forbidden {
			all = append(all, o)
		}
	}
	return all
}

// File is a file that was stored, and may have been deleted.
type File struct {
	Workspace ids.Workspace
	ID        ids.File

	ledger    *Ledger
	deleted   int
	missing   int
	uncertain bool
}

// File records a file that is stored.
func (l *Ledger) File(w ids.Workspace, id ids.File) *File {
	f := &File{Workspace: w, ID: id, ledger: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files[f.Key()] = f
	return f
}

// Content is what was stored.
func (f *File) Content() string { return "the content of " + string(f.ID) }

// Answered records the response to a delete.
func (f *File) Answered(a service.Answer) {
	l := f.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case a.Uncertain():
		f.uncertain = true
	case a.Status == http.StatusOK:
		if f.deleted++; f.deleted > 1 {
			l.breach("%s was deleted twice", f.ID)
		}
	case a.Status == http.StatusNotFound:
		f.missing++
	case a.Status != http.StatusTooManyRequests:
		l.breach("the delete of %s got %d", f.ID, a.Status)
	}
}

// Unfinished returns the files whose deletes got no certain response.
func (l *Ledger) Unfinished() []*File {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*File
	for _, f := range l.files {
		if f.uncertain && f.deleted+f.missing == 0 {
			all = append(all, f)
		}
	}
	return all
}

// Breach records a broken promise.
func (l *Ledger) Breach(format string, values ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breach(format, values...)
}

func (l *Ledger) breach(format string, values ...any) {
	l.broken = append(l.broken, fmt.Sprintf(format, values...))
}
