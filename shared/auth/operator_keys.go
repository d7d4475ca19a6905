//go:build !lambda

package auth

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/secret"
)

// NewKey is an API key to be made.
type NewKey struct {
	Account ids.Account
	// Workspace binds a standard key to one workspace; "" leaves it unbound.
	Workspace ids.Workspace
	Kind      Kind
	Name      string
	// ExpiresAt, in whole seconds, is the first time at which the key is refused. The
	// zero time means never.
	ExpiresAt time.Time
}

func (n NewKey) check() error {
	switch {
	case n.Kind != Management && n.Kind != Standard:
		return fmt.Errorf("%w: a key is of kind %s or %s", ErrInvalid, Management, Standard)
	case n.Kind == Management && n.Workspace != "":
		return fmt.Errorf("%w: a management key belongs to its whole account", ErrInvalid)
	case !n.ExpiresAt.IsZero() && n.ExpiresAt.Unix() <= 0: // 0 would be stored as never
		return fmt.Errorf("%w: a key expires after 1970-01-01", ErrInvalid)
	}
	return checkName(n.Name)
}

// CreateKey makes a key and returns its token, which is stored nowhere: this is
// the only time it can be seen. It returns ErrInvalid, ErrNoAccount,
// ErrSuspended, ErrNoWorkspace or ErrWorkspaceDeleted. After any other error the returned key may
// be stored, and its token is lost.
func (r *Registry) CreateKey(ctx context.Context, n NewKey) (secret.Bytes, Key, error) {
	if err := n.check(); err != nil {
		return secret.Bytes{}, Key{}, err
	}
	if _, err := r.account(ctx, n.Account); err != nil { // the write does not see every damage
		return secret.Bytes{}, Key{}, err
	}
	token := NewToken()
	hash := HashKey(string(token.Reveal()))
	row := keyItem{
		header:  newHeader(keyAt(hash)),
		Account: n.Account, Workspace: n.Workspace, Bound: n.Workspace != "", Kind: n.Kind, Name: n.Name, Disabled: new(false),
		CreatedAt: r.now().Unix(),
	}
	if !n.ExpiresAt.IsZero() {
		row.ExpiresAt = n.ExpiresAt.Unix()
	}
	writes := []write{r.accountActive(n.Account), r.put(row)}
	if n.Workspace != "" {
		writes = append(writes, r.workspaceLives(n.Account, n.Workspace))
	}
	for _, at := range row.entries() {
		writes = append(writes, r.addEntry(at))
	}
	if err := r.transact(ctx, "creating a key", writes...); err != nil {
		return secret.Bytes{}, row.key(nil), err
	}
	return token, row.key(nil), nil
}

// ownedBy is the condition that a key's row names this account, or, for "", that it names none.
func ownedBy(account ids.Account) (condition string, v values) {
	v = values{":account": calls.Text(string(account))}
	if account != "" {
		return "account = :account", v
	}
	v[":string"] = calls.Text("S")
	return "attribute_exists(pk) AND (account = :account OR NOT attribute_type(account, :string))", v
}

// DisableKey disables the key from the next request on, or returns ErrNoKey. A
// disabled key may be disabled again. The account is "" if the row names none.
func (r *Registry) DisableKey(ctx context.Context, account ids.Account, hash ids.KeyHash) error {
	owned, v := ownedBy(account)
	v[":true"] = calls.Bool(true)
	return r.update(ctx, "disabling a key", r.change(keyAt(hash), "SET disabled = :true", owned, v).refusing(ErrNoKey))
}

// SuspendKey sets or removes the mark that the key's account is suspended, or returns
// ErrNoKey. It may be repeated. The account is "" if the row names none.
func (r *Registry) SuspendKey(ctx context.Context, account ids.Account, hash ids.KeyHash, suspended bool) error {
	owned, v := ownedBy(account)
	change, mark := suspension(suspended)
	maps.Copy(v, mark)
	return r.update(ctx, "marking a key", r.change(keyAt(hash), change, owned, v).refusing(ErrNoKey))
}

// SuspendAccount sets or removes the mark that no key of the account is made, or returns
// ErrNoAccount. The account's keys have marks of their own, see SuspendKey. It may be repeated.
func (r *Registry) SuspendAccount(ctx context.Context, id ids.Account, suspended bool) error {
	change, v := suspension(suspended)
	return r.update(ctx, "marking an account", r.change(accountAt(id), change, "attribute_exists(pk)", v).refusing(ErrNoAccount))
}

// suspension is the change that sets or removes the mark of a suspended account, and its
// values.
func suspension(suspended bool) (change string, v values) {
	if suspended {
		return "SET suspended = :true", values{":true": calls.Bool(true)}
	}
	return "REMOVE suspended", nil // DynamoDB refuses an empty map
}

// EnableKey enables the key again. It returns ErrNoKey, or ErrWorkspaceDeleted if the
// key is bound to a deleted workspace.
func (r *Registry) EnableKey(ctx context.Context, account ids.Account, hash ids.KeyHash) error {
	row, err := r.key(ctx, account, hash)
	if err != nil {
		return err
	}
	enabled := r.change(keyAt(hash), "SET disabled = :false", "account = :account",
		values{":account": calls.Text(string(account)), ":false": calls.Bool(false)})
	writes := []write{enabled.refusing(ErrNoKey)}
	if row.Workspace != "" {
		writes = append(writes, r.workspaceLives(account, row.Workspace))
	}
	return r.transact(ctx, "enabling a key", writes...)
}

// DeleteKey removes the key and its entries in lists, all at once, or returns ErrNoKey. It
// also removes a damaged key. The account is "" if the row names none.
func (r *Registry) DeleteKey(ctx context.Context, account ids.Account, hash ids.KeyHash) error {
	found, err := r.lookUpKey(ctx, hash)
	if err != nil {
		return err
	}
	if found.row.Account != account {
		return ErrNoKey
	}
	owned, v := ownedBy(account)
	removal := write{TransactWriteItem: types.TransactWriteItem{Delete: &types.Delete{
		TableName: &r.table, Key: keyAt(hash).attributes(), ConditionExpression: &owned, ExpressionAttributeValues: v,
	}}}
	writes := []write{removal.refusing(ErrNoKey)}
	for _, at := range found.row.entries() {
		writes = append(writes, r.removeEntry(at))
	}
	return r.transact(ctx, "deleting a key", writes...)
}

// FindKey reads a key of any account, or returns ErrNoKey. It reads only the key's
// own row, so a damaged account or list does not stop it.
func (r *Registry) FindKey(ctx context.Context, hash ids.KeyHash) (Key, error) {
	found, err := r.lookUpKey(ctx, hash)
	if err != nil {
		return Key{}, err
	}
	return found.row.key(found.damage), nil
}

// key reads a key of the account, or returns ErrNoKey.
func (r *Registry) key(ctx context.Context, account ids.Account, hash ids.KeyHash) (keyItem, error) {
	found, err := r.lookUpKey(ctx, hash)
	switch {
	case err != nil:
		return keyItem{}, err
	case found.damage != nil:
		return keyItem{}, found.damage
	case found.row.Account != account:
		return keyItem{}, ErrNoKey
	}
	return found.row, nil
}

// lookUpKey reads a key's row, which may be damaged, or returns ErrNoKey.
func (r *Registry) lookUpKey(ctx context.Context, hash ids.KeyHash) (lookup[keyItem], error) {
	found, err := get[keyItem](ctx, r.db, r.table, keyAt(hash))
	if err != nil {
		return found, fmt.Errorf("looking up the key: %w", err)
	}
	if !found.exists {
		return found, ErrNoKey
	}
	return found, nil
}

// tokenBytes makes a plain SHA-256 of the whole key safe: nobody can guess 256 random bits.
const tokenBytes = 32

// random is the random part of a token.
var random = regexp.MustCompile(fmt.Sprintf("^[A-Za-z0-9_-]{%d}", ids.APIKeyRandom))

// TokensIn returns the API keys in a text, each once, whatever stands around them.
func TokensIn(text string) []string {
	var found []string
	for _, rest, more := strings.Cut(text, ids.APIKeyPrefix); more; _, rest, more = strings.Cut(rest, ids.APIKeyPrefix) {
		if part := random.FindString(rest); part != "" {
			found = append(found, ids.APIKeyPrefix+part)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// NewToken makes an API key: the prefix and 43 characters of base64url.
func NewToken() secret.Bytes {
	bytes := make([]byte, tokenBytes)
	_, _ = rand.Read(bytes) // never fails: crypto/rand ends the process instead
	defer clear(bytes)
	return secret.New(base64.RawURLEncoding.AppendEncode([]byte(ids.APIKeyPrefix), bytes))
}
