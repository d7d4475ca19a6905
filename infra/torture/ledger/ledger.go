// Package ledger keeps what clients asked for and how they were answered, and then
// holds storage to it: what was acknowledged is there, whole, once; what was
// refused is not; what got no answer is there whole or not at all; and nothing
// is there that was not asked for.
package ledger

import (
	"fmt"
	"net/http"
	"sync"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/torture/caller"
	"signalbox.dev/shared/ids"
)

// Ledger may be written from many goroutines at once.
type Ledger struct {
	account ids.Account

	mu     sync.Mutex
	orders map[string]*Order
	files  map[string]*File // by key of the bucket
	broken []string
}

// New is an empty ledger for what an account does.
func New(account ids.Account) *Ledger {
	return &Ledger{account: account, orders: make(map[string]*Order), files: make(map[string]*File)}
}

// Order is a credential that somebody asks for, once, or again and again under
// one idempotency key.
type Order struct {
	// Name is its own: by it the credential is known in storage.
	Name      string
	Workspace ids.Workspace
	Provider  string
	// IdempotencyKey is empty where there is none, and then it is asked for once.
	IdempotencyKey string
	// APIKey is who asks. An idempotency key is his own.
	APIKey string
	// Forbidden says that the request must be refused.
	Forbidden bool

	ledger    *Ledger
	given     *caller.Answer // the first 201
	refused   int
	uncertain int
}

// Order notes that a credential is going to be asked for.
func (l *Ledger) Order(o Order) *Order {
	o.ledger = l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.orders[o.Name] = &o
	return &o
}

// Secret is the provider key of the order.
func (o *Order) Secret() string { return "sk-" + testkit.Marker + "-" + o.Name }

// Body is the request.
func (o *Order) Body() map[string]any {
	return map[string]any{"key": o.Secret(), "provider": o.Provider, "name": o.Name, "workspace_id": o.Workspace}
}

// Answered notes an answer.
func (o *Order) Answered(a caller.Answer) {
	l := o.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case a.Uncertain():
		o.uncertain++
	case a.Status != http.StatusCreated:
		o.refused++
		if !o.Forbidden && a.Status != http.StatusTooManyRequests {
			l.breach("%s, which is as it should be, was refused: %s", o.Name, a.Body)
		}
	case o.Forbidden:
		l.breach("%s, which must be refused, was accepted: %s", o.Name, a.Body)
	case o.given == nil:
		o.given = &a
	case string(o.given.Body) != string(a.Body):
		l.breach("%s was answered with %s and with %s", o.Name, o.given.Body, a.Body)
	}
}

// Done reports whether the order was accepted.
func (o *Order) Done() bool {
	o.ledger.mu.Lock()
	defer o.ledger.mu.Unlock()
	return o.given != nil
}

// Orders are those that may be asked for again.
func (l *Ledger) Orders() []*Order {
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

// File is a file that was stored, and may have been asked to be deleted.
type File struct {
	Workspace ids.Workspace
	ID        ids.File

	ledger    *Ledger
	deleted   int
	missing   int
	uncertain int
}

// File notes that a file was stored.
func (l *Ledger) File(w ids.Workspace, id ids.File) *File {
	f := &File{Workspace: w, ID: id, ledger: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files[f.key()] = f
	return f
}

// Content is what was stored.
func (f *File) Content() string { return "the content of " + string(f.ID) }

// Answered notes the answer to a client that may delete it.
func (f *File) Answered(a caller.Answer) {
	l := f.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case a.Uncertain():
		f.uncertain++
	case a.Status == http.StatusOK:
		f.deleted++
		if f.deleted > 1 {
			l.breach("%s was deleted twice", f.ID)
		}
	case a.Status == http.StatusNotFound:
		f.missing++
	case a.Status != http.StatusTooManyRequests:
		l.breach("the deletion of %s was answered with %d", f.ID, a.Status)
	}
}

// Unfinished are the files whose deletion got no answer last.
func (l *Ledger) Unfinished() []*File {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*File
	for _, f := range l.files {
		if f.uncertain > 0 && f.deleted+f.missing == 0 {
			all = append(all, f)
		}
	}
	return all
}

// Breach notes a promise that was not kept.
func (l *Ledger) Breach(format string, values ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breach(format, values...)
}

func (l *Ledger) breach(format string, values ...any) {
	l.broken = append(l.broken, fmt.Sprintf(format, values...))
}
