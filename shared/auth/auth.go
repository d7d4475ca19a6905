// Package auth decides who calls and what they may reach: API keys, accounts and
// workspaces, and the access table that holds them. It is independent of HTTP.
//
// It keeps a caller from reaching the data of another account. It trusts the access
// table, which only the operator's command writes (a request moves the counters of a
// workspace, nothing else). It refuses every row that it does not recognise: a row
// that contradicts itself is not a valid key.
//
// The files named operator*.go are for the operator's command. Requests use the others.
//
// Every read that decides something is strongly consistent and nothing is cached, so a
// revoked key stops working at the next request.
package auth

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/secret"
)

// Kind is the purpose of an API key.
type Kind string

const (
	// Management keys administer their whole account.
	Management Kind = "management"
	// Standard keys use the account. One may be bound to a single workspace.
	Standard Kind = "standard"
)

// Reason is why a caller was rejected. It is part of the public contract.
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

// Rejection is the error for a caller who is not verified.
type Rejection struct {
	Reason Reason
	// Damage is set if the stored key is damaged. The client sees UnknownKey; the log shows
	// the damage.
	Damage error
}

func (r *Rejection) Error() string { return "caller rejected: " + string(r.Reason) }

// Unwrap yields the damage, if any.
func (r *Rejection) Unwrap() error { return r.Damage }

// ErrNoWorkspace means that the workspace does not exist, was deleted, belongs
// to another account or is out of the key's reach: a caller cannot distinguish
// these.
var ErrNoWorkspace = errors.New("no such workspace for this caller")

// Caller is a verified API key. Only Verify makes one, so a function that takes a
// Caller runs only for a verified key.
type Caller struct {
	account   ids.Account
	workspace ids.Workspace
	key       ids.KeyHash
	kind      Kind
}

// Account is the account that the key belongs to.
func (c Caller) Account() ids.Account { return c.account }

// MayManage reports whether the caller holds a management key.
func (c Caller) MayManage() bool { return c.kind == Management }

// Bound is the one workspace that the key may reach. If ok is false, it may reach every
// live workspace of its account.
func (c Caller) Bound() (w ids.Workspace, ok bool) { return c.workspace, c.workspace != "" }

// String names the caller for people; it holds no secret.
func (c Caller) String() string {
	return fmt.Sprintf("%s key %s of account %s", c.kind, c.key.Short(), c.account)
}

const (
	scheme   = "bearer"
	maxToken = 256
)

// Bearer is the API key of a request. It is not verified yet.
type Bearer struct {
	token secret.Bytes
	hash  ids.KeyHash
}

// ParseBearer reads the values of all Authorization headers of a request:
// exactly one, "Bearer" in any case, spaces, then 1 to 256 characters of the
// b64token of RFC 6750, section 2.1. The error is a *Rejection, Missing or
// Malformed.
func ParseBearer(headers []string) (Bearer, error) {
	if len(headers) == 0 {
		return Bearer{}, &Rejection{Reason: Missing}
	}
	if len(headers) > 1 {
		return Bearer{}, &Rejection{Reason: Malformed}
	}
	given, rest, _ := strings.Cut(headers[0], " ")
	token := strings.TrimLeft(rest, " ")
	if !strings.EqualFold(given, scheme) || !isToken(token) {
		return Bearer{}, &Rejection{Reason: Malformed}
	}
	return Bearer{token: secret.New([]byte(token)), hash: HashKey(token)}, nil
}

// HashKey returns the hash under which an API key is stored.
func HashKey(token string) ids.KeyHash {
	sum := sha256.Sum256([]byte(token))
	return ids.KeyHash(hex.EncodeToString(sum[:]))
}

// Hash is the hash of the key.
func (b Bearer) Hash() ids.KeyHash { return b.hash }

// Derive makes a 32-byte key from the token for the purpose that info names
// (HKDF-SHA256). The stored hash is not enough to make it.
func (b Bearer) Derive(info string) ([]byte, error) {
	return hkdf.Key(sha256.New, b.token.Reveal(), nil, info, sha256.Size)
}

// isToken reports whether s is a b64token of acceptable length.
func isToken(s string) bool {
	body := strings.TrimRight(s, "=")
	if body == "" || len(s) > maxToken {
		return false
	}
	for i := range len(body) {
		switch c := body[i]; {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case strings.IndexByte("-._~+/", c) >= 0:
		default:
			return false
		}
	}
	return true
}
