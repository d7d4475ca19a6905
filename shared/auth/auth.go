// Package auth decides who calls and what they may reach: API keys, accounts
// and workspaces, and the access table that holds them. It knows no HTTP.
//
// It guards against a caller reaching what belongs to somebody else. It trusts
// the access table, which only the operator's command writes (a request moves
// one counter of a workspace, nothing else). It refuses whatever it does not
// recognise: a row that contradicts itself is no valid key.
//
// Every read that decides something is strongly consistent and nothing is
// cached, so a revoked key stops working at the next request.
package auth

import (
	"errors"
	"fmt"

	"signalbox.dev/shared/ids"
)

// Kind says what an API key is for.
type Kind string

const (
	// Management keys administer their whole account.
	Management Kind = "management"
	// Standard keys use it; one may be bound to a single workspace.
	Standard Kind = "standard"
)

// Reason says why a caller was not let in. It is part of the public contract.
type Reason string

// The reasons, in the order in which they are decided.
const (
	Missing               Reason = "missing"
	Malformed             Reason = "malformed"
	UnknownKey            Reason = "unknown_key"
	Disabled              Reason = "disabled"
	Expired               Reason = "expired"
	ManagementKeyRequired Reason = "management_key_required"
)

// Rejection is the error for a caller who was not let in.
type Rejection struct {
	Reason Reason
	// Fault is set where a stored key contradicts itself: the caller is told
	// UnknownKey, the operator must be told more.
	Fault error
}

func (r *Rejection) Error() string { return "caller rejected: " + string(r.Reason) }

// Unwrap yields the fault, if any.
func (r *Rejection) Unwrap() error { return r.Fault }

// ErrNoWorkspace says that the workspace does not exist, was deleted, belongs
// to another account or is out of the key's reach. Which of these it was is
// nobody's business.
var ErrNoWorkspace = errors.New("no such workspace for this caller")

// Caller is an API key that was let in. Only Verify makes one, so what takes a
// Caller cannot be reached by anybody else.
type Caller struct {
	account   ids.Account
	workspace ids.Workspace
	key       KeyHash
	kind      Kind
}

// Account is the account that the key belongs to.
func (c Caller) Account() ids.Account { return c.account }

// Key is the hash of the calling key.
func (c Caller) Key() KeyHash { return c.key }

// MayManage reports whether the caller holds a management key.
func (c Caller) MayManage() bool { return c.kind == Management }

// Bound is the one workspace the key may reach; ok is false where it may reach
// every live workspace of its account.
func (c Caller) Bound() (w ids.Workspace, ok bool) { return c.workspace, c.workspace != "" }

// String names the caller for people; it holds no secret.
func (c Caller) String() string {
	return fmt.Sprintf("%s key %s of account %s", c.kind, c.key.Short(), c.account)
}
