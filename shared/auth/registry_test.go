package auth_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// access is the access table of a test, with an account in it.
type access struct {
	*testing.T
	db        *dynamodb.Client
	table     string
	faults    *faults.Transport
	registry  *auth.Registry
	account   ids.Account
	workspace ids.Workspace // the account's default
}

func newAccess(t *testing.T) *access {
	t.Helper()
	engines := testkit.Start(t)
	broken := faults.Wrap(nil)
	engines.Config.HTTPClient = broken
	a := &access{T: t, db: dynamodb.NewFromConfig(engines.Config), table: engines.Tables.Access, faults: broken}
	a.registry = auth.NewRegistry(a.db, a.table)
	var err error
	if a.account, a.workspace, err = a.registry.CreateAccount(t.Context(), "Acme"); err != nil {
		t.Fatal(err)
	}
	broken.Heal()
	return a
}

// key makes a key and gives it as a caller would send it.
func (a *access) key(n auth.NewKey) auth.Key {
	a.Helper()
	n.Account, n.Name = a.account, "test"
	token, key, err := a.registry.CreateKey(a.Context(), n)
	if err != nil {
		a.Fatal(err)
	}
	if hash := auth.HashKey(string(token.Reveal())); hash != key.Hash {
		a.Fatalf("the key says hash %s, its token %s", key.Hash, hash)
	}
	return key
}

func (a *access) standard() auth.Key { return a.key(auth.NewKey{Kind: auth.Standard}) }

func (a *access) bound(to ids.Workspace) auth.Key {
	return a.key(auth.NewKey{Kind: auth.Standard, Workspace: to})
}

// reason is why the key is not let in; "" where it is.
func (a *access) reason(key auth.Key) auth.Reason {
	a.Helper()
	_, err := auth.NewVerifier(a.db, a.table).Verify(a.Context(), key.Hash)
	if rejection, ok := errors.AsType[*auth.Rejection](err); ok {
		return rejection.Reason
	}
	if err != nil {
		a.Fatal(err)
	}
	return ""
}

func (a *access) wantError(got, want error) {
	a.Helper()
	if !errors.Is(got, want) {
		a.Errorf("error %v, want %v", got, want)
	}
}

func TestAnAccountBeginsWithALiveDefaultWorkspace(t *testing.T) {
	a := newAccess(t)
	caller, err := auth.NewVerifier(a.db, a.table).Verify(t.Context(), a.key(auth.NewKey{Kind: auth.Management}).Hash)
	if err != nil {
		t.Fatal(err)
	}
	if !caller.MayManage() || caller.Account() != a.account {
		t.Errorf("let in as %s", caller)
	}
	got, err := auth.NewWorkspaces(a.db, a.table).Default(t.Context(), caller)
	if err != nil || got != a.workspace {
		t.Errorf("default workspace %q, %v; want %q", got, err, a.workspace)
	}
	for want := range int64(2) {
		got, err := auth.NewPositions(a.db, a.table).Claim(t.Context(), a.account, a.workspace, "openai")
		if err != nil || got != want {
			t.Errorf("position %d, %v; want %d", got, err, want)
		}
	}
}

func TestNamesAreChecked(t *testing.T) {
	a := newAccess(t)
	for _, name := range []string{"", "\xff", strings.Repeat("é", 256)} {
		_, _, err := a.registry.CreateAccount(t.Context(), name)
		a.wantError(err, auth.ErrInvalid)
		_, err = a.registry.CreateWorkspace(t.Context(), a.account, name)
		a.wantError(err, auth.ErrInvalid)
		_, _, err = a.registry.CreateKey(t.Context(), auth.NewKey{Account: a.account, Kind: auth.Standard, Name: name})
		a.wantError(err, auth.ErrInvalid)
	}
	if _, err := a.registry.CreateWorkspace(t.Context(), a.account, strings.Repeat("é", 255)); err != nil {
		t.Error(err)
	}
}

func TestAccountsAreListed(t *testing.T) {
	a, broken, bare := newAccess(t), newAccess(t), newAccess(t)
	a.standard()
	broken.spoil("account#"+string(broken.account), "account", "v", number("3"))
	if err := bare.registry.DeleteWorkspace(t.Context(), bare.account, bare.workspace); err != nil {
		t.Fatal(err)
	}
	got, err := a.registry.ListAccounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	listed := map[ids.Account]auth.Account{}
	for i, account := range got {
		if _, twice := listed[account.ID]; twice || i > 0 && account.CreatedAt.Before(got[i-1].CreatedAt) {
			t.Errorf("account %s is listed twice or out of order", account.ID)
		}
		listed[account.ID] = account
	}
	if got := listed[a.account]; got.Name != "Acme" || got.DefaultWorkspace != a.workspace || got.CreatedAt.IsZero() || got.Fault != nil {
		t.Errorf("account %+v", got)
	}
	if got := listed[bare.account]; got.ID == "" || got.DefaultWorkspace != "" {
		t.Errorf("without a default workspace: %+v", got)
	}
	if got := listed[broken.account]; got.Fault == nil {
		t.Errorf("of another version: %+v", got)
	}
}

func TestWorkspacesAreListed(t *testing.T) {
	a := newAccess(t)
	now := time.Now().Add(time.Hour).UTC().Truncate(time.Second) // after the first was made
	a.registry.SetClock(now)
	second, err := a.registry.CreateWorkspace(t.Context(), a.account, "second")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.registry.SetDefaultWorkspace(t.Context(), a.account, second); err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{now, now.Add(time.Hour)} { // once more changes nothing
		a.registry.SetClock(at)
		if err := a.registry.DeleteWorkspace(t.Context(), a.account, a.workspace); err != nil {
			t.Fatal(err)
		}
	}
	got, err := a.registry.ListWorkspaces(t.Context(), a.account)
	if err != nil {
		t.Fatal(err)
	}
	want := []auth.Workspace{
		{ID: a.workspace, Name: "default", DeletedAt: now},
		{ID: second, Name: "second", Default: true, CreatedAt: now},
	}
	sinceNow := cmpopts.IgnoreFields(auth.Workspace{}, "CreatedAt")
	if diff := cmp.Diff(want, got, sinceNow); diff != "" {
		t.Errorf("workspaces (-want +got):\n%s", diff)
	}
}

func TestADefaultWorkspaceIsLiveAndTheAccounts(t *testing.T) {
	a, other := newAccess(t), newAccess(t)
	deleted, err := a.registry.CreateWorkspace(t.Context(), a.account, "short-lived")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.registry.DeleteWorkspace(t.Context(), a.account, deleted); err != nil {
		t.Fatal(err)
	}
	a.wantError(a.registry.SetDefaultWorkspace(t.Context(), a.account, deleted), auth.ErrWorkspaceDeleted)
	for name, foreign := range map[string]ids.Workspace{"another's": other.workspace, "none": ids.New[ids.Workspace]()} {
		t.Run(name, func(*testing.T) {
			a.wantError(a.registry.SetDefaultWorkspace(t.Context(), a.account, foreign), auth.ErrNoWorkspace)
			a.wantError(a.registry.DeleteWorkspace(t.Context(), a.account, foreign), auth.ErrNoWorkspace)
		})
	}
}

func TestAnUnknownAccountHasNothing(t *testing.T) {
	a := newAccess(t)
	unknown := ids.New[ids.Account]()
	_, err := a.registry.ListWorkspaces(t.Context(), unknown)
	a.wantError(err, auth.ErrNoAccount)
	_, err = a.registry.ListKeys(t.Context(), unknown)
	a.wantError(err, auth.ErrNoAccount)
	_, err = a.registry.CreateWorkspace(t.Context(), unknown, "w")
	a.wantError(err, auth.ErrNoAccount)
	_, _, err = a.registry.CreateKey(t.Context(), auth.NewKey{Account: unknown, Kind: auth.Management, Name: "k"})
	a.wantError(err, auth.ErrNoAccount)
	a.wantError(a.registry.DeleteWorkspace(t.Context(), unknown, a.workspace), auth.ErrNoAccount)
}

func TestTokens(t *testing.T) {
	shape := regexp.MustCompile(`^sbx_[A-Za-z0-9_-]{43}$`)
	first, second := string(auth.NewToken().Reveal()), string(auth.NewToken().Reveal())
	if !shape.MatchString(first) || first == second {
		t.Errorf("tokens %s and %s", first, second)
	}
	if _, err := auth.ParseBearer([]string{"Bearer " + first}); err != nil {
		t.Errorf("a token cannot be sent: %v", err)
	}
}
