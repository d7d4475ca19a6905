package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

type keyCommands struct {
	Create  keyCreate  `cmd:"" help:"Create an API key and show it, once."`
	List    keyList    `cmd:"" reads:"" help:"List the account's API keys."`
	Find    keyFind    `cmd:"" reads:"" anywhere:"" help:"Find API keys in all accounts by hash or name, or by a leaked key."`
	Show    keyShow    `cmd:"" reads:"" anywhere:"" help:"Show a key with its whole hash and its times, wherever it is."`
	Disable keyDisable `cmd:"" anywhere:"" help:"Disable keys, wherever they are: they are refused from the next request on."`
	Enable  keyEnable  `cmd:"" anywhere:"" help:"Enable disabled keys, wherever they are."`
	Replace keyReplace `cmd:"" anywhere:"" help:"Rotate a key: add the new one to every allow-list of credentials that has the old one. Repeat it if it was interrupted."`
	Delete  keyDelete  `cmd:"" anywhere:"" help:"Delete a key, wherever it is, and take it out of allow-lists that have another. This cannot be undone."`
}

type keyCreate struct {
	owner
	Name      string             `arg:"" help:"The key's name."`
	Kind      auth.Kind          `enum:"management,standard" default:"standard" help:"management or standard (${default})."`
	Workspace ids.Workspace      `placeholder:"ID" help:"Bind a standard key to this workspace alone."`
	ExpiresIn arguments.Lifetime `placeholder:"DURATION" help:"How long the key is valid, such as 90d or 36h. If omitted, it never expires."`
}

// Run makes a key. Only the key goes to standard output, so it can be piped. Everything
// else goes to standard error.
func (c keyCreate) Run(ctx context.Context, s *session) error {
	if output.IsDiscarded(s.stdout) {
		return acts.UsageError("standard output is closed or discarded, so nobody would see the key: no key was made")
	}
	var end time.Time // never
	if c.ExpiresIn != 0 {
		end = s.now().Add(time.Duration(c.ExpiresIn))
	}
	token, key, err := s.Registry.CreateKey(ctx, auth.NewKey{
		Account: c.Account, Workspace: c.Workspace, Kind: c.Kind, Name: c.Name, ExpiresAt: end,
	})
	s.Audit(ctx, "key.create", err, []any{"account", c.Account, "workspace", c.Workspace, "kind", c.Kind, "key", key.Hash})
	if err != nil {
		return err
	}
	defer token.Wipe()
	shown := string(token.Reveal())
	out := s.out
	out.Quiet = false // a hash in its place would lose the key
	if err := out.Say(createdKeyView{shown, viewKey(key, s.now())}, "%s", shown); err != nil {
		return c.unseen(context.WithoutCancel(ctx), s, key.Hash, err)
	}
	s.Note("This is the only time the key is shown. Its hash, by which lists and logs name it, is %s.", key.Hash)
	return nil
}

// unseen deletes a key that could not be shown, because nobody can use it.
func (c keyCreate) unseen(ctx context.Context, s *session, hash ids.KeyHash, shown error) error {
	ctx = acts.Watched(ctx)
	err := s.Registry.DeleteKey(ctx, c.Account, hash)
	s.Audit(ctx, "key.delete", err, []any{"account", c.Account, "key", hash})
	if err != nil {
		return fmt.Errorf("the key could not be shown (%w), and deleting it failed (%w): delete key %s", shown, err, hash.Short())
	}
	return fmt.Errorf("the key could not be shown, so it is deleted again: %w", shown)
}

type oneKey struct {
	keySearch
	Hash arguments.HashPrefix `arg:"" help:"The key's hash, or a prefix of it that no other key has (8 digits or more)."`
}

type manyKeys struct {
	keySearch
	Hashes []arguments.HashPrefix `arg:"" name:"hash" help:"The hashes of the keys, or prefixes that no other key has (8 digits or more)."`
}

type (
	keyDisable struct{ manyKeys }
	keyEnable  struct{ manyKeys }
	keyShow    struct{ oneKey }
	keyDelete  struct {
		oneKey
		confirmation
	}
	keyReplace struct {
		keySearch
		Old arguments.HashPrefix `arg:"" help:"The hash of the old key, or a prefix. It stays in the lists until you delete it."`
		New arguments.HashPrefix `arg:"" help:"The hash of the key that takes its place, or a prefix."`
	}
)

// Run disables keys, and goes on after a failure. Only then it looks for the lists that have
// the keys, because nothing must delay a revocation.
func (c keyDisable) Run(ctx context.Context, s *session) error {
	var refused []auth.Key
	err := changeEach(ctx, s, "key", "disabled", c.Hashes, func(ctx context.Context, hash arguments.HashPrefix) error {
		one := oneKey{c.keySearch, hash}
		key, err := one.find(ctx, s)
		if err == nil {
			err = s.Registry.DisableKey(ctx, key.Account, key.Hash)
		}
		if err == nil {
			refused = append(refused, key)
		}
		err = orUnchanged(err, key.Disabled)
		s.Audit(ctx, "key.disable", err, one.attrs(key))
		return one.say(s, err, key, "disabled")
	})
	for _, key := range refused {
		s.Warn(s.allowing(ctx, key))
	}
	return err
}

func (c keyShow) Run(ctx context.Context, s *session) error {
	key, err := c.find(ctx, s)
	if err != nil {
		return err
	}
	return output.One(s.out, viewKey(key, s.now()))
}

func (c keyEnable) Run(ctx context.Context, s *session) error {
	return changeEach(ctx, s, "key", "enabled", c.Hashes, func(ctx context.Context, hash arguments.HashPrefix) error {
		one := oneKey{c.keySearch, hash}
		key, err := one.find(ctx, s)
		if err == nil {
			err = s.Registry.EnableKey(ctx, key.Account, key.Hash)
		}
		state := "active"
		if key.Suspended {
			state = "suspended"
			s.Warn("the key stays refused while its account is suspended: `admin account enable` ends that")
		}
		err = orUnchanged(err, !key.Disabled)
		s.Audit(ctx, "key.enable", err, one.attrs(key))
		return one.say(s, err, key, state)
	})
}

func (c keyDelete) Run(ctx context.Context, s *session) error {
	key, err := c.find(ctx, s)
	if errors.Is(err, auth.ErrNoKey) && c.Account != "" && len(c.Hash) == arguments.HashLength {
		return c.clean(ctx, s, err)
	}
	if err != nil {
		s.Audit(ctx, "key.delete", err, c.attrs(key))
		return err
	}
	s.Warn(s.allowing(ctx, key))
	if err := c.confirm(ctx, s, "removes "+named("key", key.Name, key.Hash.Short())+" for good; `admin key disable` can be undone",
		key.Name, string(key.Hash)); err != nil {
		return err
	}
	return c.say(s, s.DeleteKey(ctx, key), key, "deleted")
}

// clean takes the hash of a key that is deleted already out of the account's allow-lists. If
// none has it, or the key is another account's, it returns the error absent.
func (c keyDelete) clean(ctx context.Context, s *session, absent error) error {
	key := auth.Key{Hash: ids.KeyHash(c.Hash), Account: c.Account}
	changed := 0
	_, err := s.Registry.FindKey(ctx, key.Hash)
	if errors.Is(err, auth.ErrNoKey) {
		changed, err = s.Unlist(ctx, key)
	}
	if changed == 0 && err == nil {
		err = absent
	}
	err = orUnchanged(err, true)
	s.Audit(ctx, "key.delete", err, c.attrs(key))
	return c.say(s, err, key, "deleted")
}

// attrs name the key in an audit line, also one that was not found.
func (c oneKey) attrs(key auth.Key) []any {
	return []any{"account", cmp.Or(key.Account, c.Account), "key", cmp.Or(string(key.Hash), string(c.Hash))}
}

func (c oneKey) say(s *session, err error, key auth.Key, state string) error {
	return s.sayState(err, string(key.Hash), "Key "+key.Hash.Short(), state)
}

// find finds the key. With a whole hash, it reads no list.
func (c oneKey) find(ctx context.Context, s *session) (auth.Key, error) {
	if len(c.Hash) == arguments.HashLength {
		return c.get(ctx, s, ids.KeyHash(c.Hash))
	}
	keys, _, err := c.look(ctx, s, func(k auth.Key) bool { return strings.HasPrefix(string(k.Hash), string(c.Hash)) })
	if err == nil && len(keys) > 1 {
		err = acts.UsageError("several key hashes begin with this prefix: give more digits")
	}
	if err != nil {
		return auth.Key{}, err
	}
	return keys[0], nil
}

// keySearch defines the accounts in which a command looks for keys.
type keySearch struct {
	Account ids.Account `env:"SIGNALBOX_ACCOUNT" placeholder:"ID" help:"Look in this account alone. If omitted, in all accounts: that reads the whole access table."`
}

func (c keySearch) where() string {
	if c.Account == "" {
		return "all accounts"
	}
	return "account " + string(c.Account)
}

// get returns the key, or ErrNoKey. A key whose row names no account is in every account.
func (c keySearch) get(ctx context.Context, s *session, hash ids.KeyHash) (auth.Key, error) {
	key, err := s.Registry.FindKey(ctx, hash)
	isOthers := key.Account != "" && c.Account != "" && key.Account != c.Account
	if errors.Is(err, auth.ErrNoKey) || err == nil && isOthers {
		return auth.Key{}, c.absent()
	}
	return key, err
}

func (c keySearch) absent() error {
	if c.Account != "" {
		return fmt.Errorf("%w: looked in %s; `admin key find` looks in all", auth.ErrNoKey, c.where())
	}
	return fmt.Errorf("%w: looked in %s", auth.ErrNoKey, c.where())
}

// look returns the keys that match, or ErrNoKey if there are none, and the others.
func (c keySearch) look(ctx context.Context, s *session, matches func(auth.Key) bool) (found, others []auth.Key, err error) {
	keys, err := c.all(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	found, others = acts.Split(keys, matches)
	if len(found) == 0 {
		return nil, others, fmt.Errorf("%w: looked in %s, at %s", auth.ErrNoKey, c.where(), acts.Count(len(keys), "key"))
	}
	return found, others, nil
}

// all returns the keys of the account or of all accounts, oldest first. It reads an account's row
// only if there are no keys, because a damaged one must not prevent a revocation.
func (c keySearch) all(ctx context.Context, s *session) (keys []auth.Key, err error) {
	if c.Account == "" {
		survey, err := s.ReadAccess(ctx)
		if err != nil {
			return nil, err
		}
		return slices.SortedFunc(maps.Values(survey.Keys), func(a, b auth.Key) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Hash, b.Hash))
		}), nil
	}
	if keys, err = s.Registry.ListKeys(ctx, c.Account); err == nil && len(keys) == 0 {
		err = s.Registry.CheckAccount(ctx, c.Account)
	}
	return keys, err
}

// keyFind has no default account: a leaked key may be anybody's.
type keyFind struct {
	Account       ids.Account        `placeholder:"ID" help:"Look in this account alone. If omitted, in all accounts, whatever SIGNALBOX_ACCOUNT is: that reads the whole access table."`
	ExpiresWithin arguments.Lifetime `placeholder:"DURATION" help:"Find those that expire within this time, such as 14d."`
	Text          string             `arg:"" optional:"" help:"The beginning of a hash, as logs have it, or a part of the name. - reads a leaked key from standard input. If omitted, every key."`
	State         string             `enum:"${keyStates}," default:"" placeholder:"STATE" help:"Find those that are active, disabled, suspended, expired or damaged."`
}

// Run finds keys. If the text is a key, given by mistake, it finds that key too.
func (c keyFind) Run(ctx context.Context, s *session) error {
	found, err := c.find(ctx, s)
	if err != nil {
		return err
	}
	if end := s.now().Add(time.Duration(c.ExpiresWithin)); c.ExpiresWithin > 0 {
		found, _ = acts.Split(found, func(k auth.Key) bool { return k.ExpiresAt.After(s.now()) && !k.ExpiresAt.After(end) })
	}
	views := each(found, func(key auth.Key) keyView { return viewKey(key, s.now()) })
	views = only(views, c.State, func(v keyView) string { return string(v.State) })
	return output.List(s.out, views, "key", "name", "kind", "state", "age", "account", "workspace", "expires")
}

func (c keyFind) find(ctx context.Context, s *session) ([]auth.Key, error) {
	if c.Text == "-" {
		text, err := s.leakedText(ctx)
		if err != nil {
			return nil, err
		}
		return keySearch{c.Account}.leaked(ctx, s, auth.TokensIn(text))
	}
	text, name, hash := strings.ToLower(c.Text), folded(c.Text), auth.HashKey(c.Text)
	found, others, err := keySearch{c.Account}.look(ctx, s, func(k auth.Key) bool {
		return strings.HasPrefix(string(k.Hash), text) || strings.Contains(folded(k.Name), name) || k.Hash == hash
	})
	if damaged, _ := acts.Split(others, func(k auth.Key) bool { return k.Damage != nil }); len(damaged) > 0 {
		s.Warn("the search by name is incomplete, because it passed over " + acts.Count(len(damaged), "damaged key") + ": `admin key find --state damaged` lists them")
	}
	return found, err
}

func (c keySearch) leaked(ctx context.Context, s *session, tokens []string) (found []auth.Key, err error) {
	if len(tokens) == 0 {
		return nil, acts.UsageError("standard input has no API key that this command can read: a key is sbx_ and 43 of A-Z a-z 0-9 _ -, not encoded")
	}
	for _, token := range tokens {
		switch key, err := c.get(ctx, s, auth.HashKey(token)); {
		case err == nil:
			found = append(found, key)
		case !errors.Is(err, auth.ErrNoKey):
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, c.absent()
	}
	return found, nil
}

type keyList struct {
	owner
	State string `enum:"${keyStates}," default:"" placeholder:"STATE" help:"List those that are active, disabled, suspended, expired or damaged."`
}

type keyView struct {
	Hash      ids.KeyHash     `json:"hash" title:"key hash" list:"key,short"`
	Kind      auth.Kind       `json:"kind" title:"kind"`
	Name      string          `json:"name" title:"name" list:"name,16"`
	Account   output.Optional `json:"account_id" title:"account" list:"account,short"`
	Workspace output.Optional `json:"workspace_id" title:"workspace" list:"workspace,short"`
	State     keyState        `json:"state" title:"state"`
	CreatedAt output.Optional `json:"created_at" title:"created" list:"age,age"`
	ExpiresAt output.Optional `json:"expires_at" title:"expires" list:"expires,age"`
}

type createdKeyView struct {
	Key string `json:"key"`
	keyView
}

func viewKey(k auth.Key, now time.Time) keyView {
	return keyView{
		Hash: k.Hash, Kind: k.Kind, Name: k.Name, Account: output.Optional(k.Account), Workspace: output.Optional(k.Workspace),
		State: stateOf(k, now), CreatedAt: output.When(k.CreatedAt), ExpiresAt: output.When(k.ExpiresAt),
	}
}

// keyState says why a key is refused. Every request with a key that is not active is.
type keyState string

const (
	active    keyState = "active"
	disabled  keyState = "disabled"
	suspended keyState = "suspended" // with its account
	expired   keyState = "expired"
	damaged   keyState = "damaged"
)

var keyStates = []keyState{active, disabled, suspended, expired, damaged}

// stateOf returns the first that holds.
func stateOf(k auth.Key, now time.Time) keyState {
	switch {
	case k.Damage != nil:
		return damaged
	case k.Disabled:
		return disabled
	case k.Suspended:
		return suspended
	case !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt):
		return expired
	default:
		return active
	}
}

func (c keyList) Run(ctx context.Context, s *session) error {
	keys, err := keySearch{c.Account}.all(ctx, s)
	if err != nil {
		return err
	}
	views := each(keys, func(k auth.Key) keyView { return viewKey(k, s.now()) })
	views = only(views, c.State, func(v keyView) string { return string(v.State) })
	return output.List(s.out, views, "key", "name", "kind", "state", "age", "expires", "workspace")
}
