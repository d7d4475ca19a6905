package auth_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// fixture is a new account in the access table.
type fixture struct {
	*testing.T
	db        *dynamodb.Client
	table     string
	rows      kit.Rows
	faults    *faults.Transport
	registry  *auth.Registry
	verifier  *auth.Verifier
	account   ids.Account
	workspace ids.Workspace // the account's default
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	engines := kit.Start(t)
	transport := faults.Wrap(nil)
	engines.Config.HTTPClient = transport
	f := &fixture{T: t, db: dynamodb.NewFromConfig(engines.Config), table: engines.Tables.Access, faults: transport}
	f.rows = kit.Rows{DB: f.db, Table: f.table}
	f.registry, f.verifier = auth.NewRegistry(f.db, f.table), auth.NewVerifier(f.db, f.table)
	var err error
	f.account, f.workspace, err = f.registry.CreateAccount(t.Context(), "Acme")
	f.wantError(err, nil)
	transport.Heal()
	return f
}

func (f *fixture) newKey(n auth.NewKey) auth.Key {
	f.Helper()
	n.Account, n.Name = f.account, "test"
	token, key, err := f.registry.CreateKey(f.Context(), n)
	if err != nil || auth.HashKey(string(token.Reveal())) != key.Hash {
		f.Fatalf("created key %s: %v", key.Hash, err)
	}
	return key
}

func (f *fixture) newUnboundKey() auth.Key { return f.newKey(auth.NewKey{Kind: auth.Standard}) }

func (f *fixture) newBoundKey() auth.Key {
	return f.newKey(auth.NewKey{Kind: auth.Standard, Workspace: f.workspace})
}

func (f *fixture) newWorkspace() ids.Workspace {
	f.Helper()
	id, err := f.registry.CreateWorkspace(f.Context(), f.account, "second")
	f.wantError(err, nil)
	return id
}

// verify returns the caller, or the reason why the key is rejected.
func (f *fixture) verify(key ids.KeyHash) (auth.Caller, auth.Reason) {
	f.Helper()
	caller, err := f.verifier.Verify(f.Context(), key)
	rejection, ok := errors.AsType[*auth.Rejection](err)
	if !ok {
		f.wantError(err, nil)
		return caller, ""
	}
	return caller, rejection.Reason
}

func (f *fixture) wantReason(key auth.Key, want auth.Reason) {
	f.Helper()
	if _, got := f.verify(key.Hash); got != want {
		f.Errorf("the key is rejected as %q, want %q", got, want)
	}
}

func (f *fixture) wantError(got, want error) {
	f.Helper()
	if !errors.Is(got, want) {
		f.Errorf("error %v, want %v", got, want)
	}
}

// The rows of the fixture.

func (f *fixture) keyRow(key auth.Key) kit.Row {
	return kit.Key("key#"+string(key.Hash), "key")
}
func (f *fixture) accountRow() kit.Row {
	return kit.Key("account#"+string(f.account), "account")
}
func (f *fixture) workspaceRow() kit.Row {
	return kit.Key("workspace#"+string(f.workspace), "workspace")
}

// If the response is lost, an audit line can still name the new ids.
func TestAnUncertainCreationIsNamed(t *testing.T) {
	f := newFixture(t)
	f.faults.Inject(faults.Rule{Operation: "TransactWriteItems", Fault: faults.LoseAnswer()})
	account, first, accountErr := f.registry.CreateAccount(t.Context(), "another")
	second, workspaceErr := f.registry.CreateWorkspace(t.Context(), f.account, "w")
	_, key, keyErr := f.registry.CreateKey(t.Context(), auth.NewKey{Account: f.account, Kind: auth.Standard, Name: "k"})
	if accountErr == nil || workspaceErr == nil || keyErr == nil {
		t.Errorf("without a response: %v, %v, %v", accountErr, workspaceErr, keyErr)
	}
	f.faults.Heal()
	for account, workspace := range map[ids.Account]ids.Workspace{account: first, f.account: second} {
		if _, err := f.registry.FindWorkspace(t.Context(), account, workspace); err != nil {
			t.Errorf("workspace %q of %q: %v", workspace, account, err)
		}
	}
	if _, err := f.registry.FindKey(t.Context(), key.Hash); err != nil {
		t.Errorf("key %q: %v", key.Hash, err)
	}
}

// A change that was applied is a success even if a later attempt met a conflict.
func TestAConflictAfterALostResponse(t *testing.T) {
	f := newFixture(t)
	key := f.newBoundKey()
	f.faults.Inject(faults.Rule{Operation: "TransactWriteItems", Call: 2, Attempt: 1, Fault: faults.LoseAnswer()})
	f.faults.Inject(faults.Rule{Operation: "TransactWriteItems", Call: 2, Attempt: 2, Fault: faults.Cancel("None", "TransactionConflict")})
	f.wantError(f.registry.DeleteKey(t.Context(), f.account, key.Hash), nil)
}

// A purge counts from the deletion's time: the time of the attempt that takes effect. A second
// deletion changes nothing.
func TestADeletionHasTheTimeOfItsLastAttempt(t *testing.T) {
	f, late := newFixture(t), time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	conflict := faults.Cancel("TransactionConflict", "None")
	fault := func(r *http.Request, apply faults.Apply) (*http.Response, error) {
		f.registry.SetClock(late)
		return conflict(r, apply)
	}
	f.faults.Inject(faults.Rule{Operation: "TransactWriteItems", Call: 1, Fault: fault})
	f.wantError(f.registry.DeleteWorkspace(t.Context(), f.account, f.workspace), nil)
	f.registry.SetClock(late.Add(time.Hour))
	f.wantError(f.registry.DeleteWorkspace(t.Context(), f.account, f.workspace), nil)
	if got, err := f.registry.FindWorkspace(t.Context(), f.account, f.workspace); err != nil || !got.DeletedAt.Equal(late) || got.Default {
		t.Errorf("%+v, %v; want it deleted at %s", got, err, late)
	}
	_, err := f.registry.FindWorkspace(t.Context(), f.account, "") // there is no default any more
	f.wantError(err, auth.ErrNoWorkspace)
}

// A deletion disables a key whose row names no account, also one that somebody puts right meanwhile.
// It leaves a sound key that is not bound, although the workspace's list names it.
func TestADeletionDisablesNobodysKey(t *testing.T) {
	f := newFixture(t)
	key, unbound := f.newBoundKey(), f.newUnboundKey()
	f.rows.Put(t, kit.Key("workspace#"+string(f.workspace), "key#"+string(unbound.Hash))) // in the list by mistake
	sound := f.rows.Get(t, f.keyRow(key))
	f.rows.Set(t, f.keyRow(key), "account", kit.Text(""))
	f.faults.Inject(faults.Rule{Operation: "UpdateItem", Call: 1, Fault: func(_ *http.Request, apply faults.Apply) (*http.Response, error) {
		f.rows.Put(t, sound)
		return apply()
	}})
	f.wantError(f.registry.DeleteWorkspace(t.Context(), f.account, f.workspace), nil)
	f.wantReason(key, auth.Disabled)
	f.wantReason(unbound, "")
}

func TestAKeyExpires(t *testing.T) {
	f := newFixture(t)
	end := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	key := f.newKey(auth.NewKey{Kind: auth.Standard, Workspace: f.workspace, ExpiresAt: end})
	if listed, err := f.registry.ListKeys(t.Context(), f.account); err != nil || !listed[0].ExpiresAt.Equal(end) {
		t.Errorf("listed %+v, %v", listed, err)
	}
	f.verifier.SetClock(end.Add(-time.Nanosecond))
	f.wantReason(key, "")
	f.verifier.SetClock(end)
	f.wantReason(key, auth.Expired)
	f.wantError(f.registry.DisableKey(t.Context(), f.account, key.Hash), nil)
	f.wantReason(key, auth.Disabled) // the first in the contract's order
}

func TestBatches(t *testing.T) {
	f, other := newFixture(t), newFixture(t)
	for range 101 {
		f.newUnboundKey()
	}
	listed, err := f.registry.ListKeys(t.Context(), f.account)
	if err != nil || len(listed) != 101 {
		t.Errorf("%d keys are listed, %v; want 101", len(listed), err)
	}
	keyring, own := auth.NewKeyring(other.db, other.table), other.newUnboundKey().Hash
	hashes := []ids.KeyHash{own, own}
	for n := range 99 {
		hashes = append(hashes, auth.HashKey(fmt.Sprint("unknown ", n)))
	}
	owned, err := keyring.Owned(t.Context(), other.account, hashes)
	if diff := cmp.Diff(auth.Owned{Hashes: map[ids.KeyHash]bool{own: true}}, owned); err != nil || diff != "" {
		t.Errorf("of 100 keys and a repeat: %v (-want +got):\n%s", err, diff)
	}
	if owned, err := keyring.Owned(t.Context(), f.account, hashes); err != nil || len(owned.Hashes) > 0 {
		t.Errorf("for another account: %v, %v", owned, err)
	}
	other.faults.Heal()
	if owned, err := keyring.Owned(t.Context(), other.account, append(hashes, "one more")); err == nil || len(other.faults.Calls()) > 0 {
		t.Errorf("of 101 keys: %v after %d calls", owned, len(other.faults.Calls()))
	}
}
