package routing_test

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/infra/test/record"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

// fixture is an account with a workspace, and a router's reader. Its calls are recorded and
// can be made to fail.
type fixture struct {
	engines   kit.Engines
	db        *dynamodb.Client
	tenant    kit.Tenant
	account   ids.Account
	workspace ids.Workspace // the account's default
	hash      ids.KeyHash   // of a standard key of the account, not bound to a workspace
	reader    *routing.Reader
	faults    *faults.Transport
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{engines: kit.Start(t)}
	f.db = dynamodb.NewFromConfig(f.engines.Config)
	f.tenant = kit.NewTenant(t, auth.NewRegistry(f.db, f.engines.Tables.Access))
	f.account, f.workspace = f.tenant.ID, f.tenant.Workspace
	f.hash = auth.HashKey(f.tenant.StandardKey(t, ""))
	f.faults = faults.Wrap(f.engines.Config.HTTPClient)
	config := f.engines.Config
	config.HTTPClient = record.Client{HTTPClient: f.faults, Caller: "Router", Resources: map[string]string{
		f.engines.Tables.Access: "AccessTable", f.engines.Tables.Credentials: "CredentialsTable", f.engines.Tables.SealingKey: "SealingKey",
	}}
	var err error
	f.reader, err = routing.NewReader(dynamodb.NewFromConfig(config), kms.NewFromConfig(config), routing.Config{
		AccessTable: f.engines.Tables.Access, CredentialsTable: f.engines.Tables.Credentials, SealingKeyARNs: []string{f.engines.Tables.SealingKey},
	})
	kit.Must(t, err)
	t.Cleanup(f.reader.Close)
	return f
}

func (f *fixture) manager() *byok.Manager { return byok.NewManager(f.db, f.engines.Tables.Credentials) }

// store stores a credential with the key "sk-secret".
func (f *fixture) store(t testing.TB, settings byok.Settings) byok.Credential {
	t.Helper()
	settings.Provider = provider
	store := byok.NewStore(f.db, f.engines.Tables.Credentials, f.engines.Tables.Control,
		seal.NewSealer(kms.NewFromConfig(f.engines.Config), f.engines.Tables.SealingKey))
	draft, err := store.Seal(t.Context(), f.account, f.workspace, byok.New{Settings: settings, Key: secret.New([]byte("sk-secret"))})
	kit.Must(t, err)
	kit.Must(t, store.Create(t.Context(), draft))
	return draft.Credential
}

// plan plans a request, as a router does for each.
func (f *fixture) plan(t testing.TB, hash ids.KeyHash) (*routing.Reading, error) {
	t.Helper()
	return f.reader.Read(t.Context(), hash, request("m"))
}

func (f *fixture) mustPlan(t testing.TB) *routing.Reading {
	t.Helper()
	reading, err := f.plan(t, f.hash)
	kit.Must(t, err)
	return reading
}

// mustOpen opens the first step of a new reading.
func (f *fixture) mustOpen(t testing.TB) {
	t.Helper()
	reading := f.mustPlan(t)
	if key, err := reading.Open(t.Context(), reading.Steps[0]); string(key.Reveal()) != "sk-secret" || err != nil {
		t.Fatalf("opened %q, %v", key.Reveal(), err)
	}
}

// calls counts the calls of an operation that the reader has made.
func (f *fixture) calls(operation string) int {
	n := 0
	for _, c := range f.faults.Calls() {
		if c.Operation == operation {
			n++
		}
	}
	return n
}

// A bound key costs one read less than an unbound key, which needs the account's default.
func TestTenRequestsCostOneDecrypt(t *testing.T) {
	f := newFixture(t)
	f.store(t, byok.Settings{})
	for bound, gets := range map[ids.Workspace]int{f.workspace: 20, "": 30} {
		f.faults.Heal()
		f.reader.Close()
		f.hash = auth.HashKey(f.tenant.StandardKey(t, bound))
		for range 10 {
			f.mustOpen(t)
		}
		if query, get, decrypt := f.calls("Query"), f.calls("GetItem"), f.calls("Decrypt"); query != 10 || get != gets || decrypt != 1 {
			t.Errorf("10 requests made %d queries, %d gets, %d decrypts", query, get, decrypt)
		}
	}
	for _, c := range f.faults.Calls() {
		if c.Service == "DynamoDB" && c.Input["ConsistentRead"] != true {
			t.Errorf("%s is not strongly consistent", c.Operation)
		}
	}
}

// KMS that answers late opens keys all the same.
func TestALateDecrypt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store(t, byok.Settings{})
	f.faults.Inject(faults.Rule{Operation: "Decrypt", Fault: func(r *http.Request, apply faults.Apply) (*http.Response, error) {
		select {
		case <-time.After(time.Second):
			return apply()
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}})
	f.mustOpen(t)
	if n := f.calls("Decrypt"); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// A known key costs one round trip: no read waits for another one.
func TestAKnownKeyIsReadSideBySide(t *testing.T) {
	f := newFixture(t)
	f.store(t, byok.Settings{})
	f.mustOpen(t)
	var all sync.WaitGroup
	all.Add(4) // the key, the account, the workspace and the credentials
	f.faults.Inject(faults.Rule{Attempt: 1, Fault: func(_ *http.Request, apply faults.Apply) (*http.Response, error) {
		all.Done()
		all.Wait()
		return apply()
	}})
	f.mustOpen(t)
}

func TestReadFindsWhoCalls(t *testing.T) {
	f, stranger := newFixture(t), newFixture(t)
	other, deleted := f.tenant.NewWorkspace(t), f.tenant.NewWorkspace(t)
	bound := f.tenant.StandardKey(t, deleted)
	f.tenant.DeleteWorkspace(t, deleted)
	misplaced := f.tenant.StandardKey(t, other)
	bare := kit.NewTenant(t, f.tenant.Registry)
	withoutDefault := bare.StandardKey(t, "")
	bare.DeleteWorkspace(t, bare.Workspace)
	rows := kit.Rows{DB: f.db, Table: f.engines.Tables.Access}
	rows.Set(t, kit.Key("key#"+string(auth.HashKey(misplaced)), "key"), "workspace", kit.Text(string(stranger.workspace)))
	rejected := func(reason auth.Reason) func(error) bool {
		return func(err error) bool {
			rejection, ok := errors.AsType[*auth.Rejection](err)
			return ok && rejection.Reason == reason
		}
	}
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	for name, c := range map[string]struct {
		token     string
		workspace ids.Workspace
		refused   func(error) bool
	}{
		"unbound":                       {f.tenant.StandardKey(t, ""), f.workspace, is(nil)},
		"bound":                         {f.tenant.StandardKey(t, other), other, is(nil)},
		"management":                    {f.tenant.ManagementKey(t), "", is(routing.ErrManagementKey)},
		"unknown":                       {"sbx_unknown", "", rejected(auth.UnknownKey)},
		"expired":                       {f.tenant.ExpiredKey(t), "", rejected(auth.Expired)},
		"bound to a deleted workspace":  {bound, "", rejected(auth.Disabled)},
		"bound to another's workspace":  {misplaced, "", is(routing.ErrNoWorkspace)},
		"of another account, its own":   {stranger.tenant.StandardKey(t, ""), stranger.workspace, is(nil)},
		"of an account without default": {withoutDefault, "", is(routing.ErrNoWorkspace)},
	} {
		for range 2 { // the second time by a guess
			reading, err := f.plan(t, auth.HashKey(c.token))
			if !c.refused(err) || err == nil && reading.Workspace != c.workspace {
				t.Errorf("%s: %+v, %v", name, reading, err)
			}
		}
	}
}

// The workspace that a key meant last time is only a guess.
func TestAKeyThatMeansAnotherWorkspaceNow(t *testing.T) {
	f := newFixture(t)
	c := f.store(t, byok.Settings{})
	f.mustOpen(t)
	other := f.tenant.NewWorkspace(t)
	kit.Must(t, f.tenant.Registry.SetDefaultWorkspace(t.Context(), f.account, other))
	if got := steps(f.mustPlan(t).Plan); !slices.Equal(got, []string{"openai shared"}) {
		t.Errorf("with another default: %v", got)
	}
	kit.Must(t, f.tenant.Registry.SetDefaultWorkspace(t.Context(), f.account, f.workspace))
	if got := f.mustPlan(t).Steps[0].Credential; got != c.ID {
		t.Errorf("with the first default again: %v", got)
	}
	row := kit.Key("key#"+string(f.hash), "key")
	kit.Rows{DB: f.db, Table: f.engines.Tables.Access}.Set(t, row, "workspace", kit.Text(string(other)))
	if got := steps(f.mustPlan(t).Plan); !slices.Equal(got, []string{"openai shared"}) {
		t.Errorf("bound to another: %v", got)
	}
}

// A refused key costs the reads up to the one that refuses it, although it was planned for
// before.
func TestARefusedKeyCostsLittle(t *testing.T) {
	for name, c := range map[string]struct {
		refuse func(f *fixture, token string)
		reads  []int // the first refusal still makes the guess's reads
	}{
		"disabled":   {func(f *fixture, token string) { f.tenant.Disable(t, token) }, []int{4, 1, 1}},
		"no default": {func(f *fixture, _ string) { f.tenant.DeleteWorkspace(t, f.workspace) }, []int{4, 2, 2}},
	} {
		f := newFixture(t)
		token := f.tenant.StandardKey(t, "")
		f.hash = auth.HashKey(token)
		f.mustPlan(t)
		c.refuse(f, token)
		for n, want := range c.reads {
			f.faults.Heal()
			if _, err := f.plan(t, f.hash); err == nil {
				t.Errorf("%s: it is planned for", name)
			}
			if got := f.calls("GetItem") + f.calls("Query"); got != want {
				t.Errorf("%s: refusal %d made %d reads, want %d", name, n+1, got, want)
			}
		}
	}
}

// A reading opens only the steps of its own plan. What is kept of it for a first attempt
// opens the first step, for two seconds.
func TestOnlyStepsOfThePlanOpen(t *testing.T) {
	f := newFixture(t)
	c := f.store(t, byok.Settings{})
	f.mustOpen(t) // kept
	earlier := f.mustPlan(t).Steps[0]
	kit.Must(t, f.manager().Disable(t.Context(), f.workspace, c.ID))
	restricted := f.store(t, byok.Settings{AllowedModels: []string{"n"}})
	used := f.store(t, byok.Settings{})
	f.store(t, byok.Settings{Fallback: true})
	reading := f.mustPlan(t)
	first := reading.First()
	if len(first.Steps) != 1 || first.Steps[0].Credential != used.ID || !first.IsFresh() || first.Workspace != f.workspace || first.Account != f.account {
		t.Errorf("%+v of %+v", first, reading)
	}
	if key, err := first.Open(t.Context(), reading.Steps[0]); string(key.Reveal()) != "sk-secret" || err != nil {
		t.Errorf("opened %q, %v", key.Reveal(), err)
	}
	if _, err := first.Open(t.Context(), reading.Steps[2]); err == nil {
		t.Error("it opens the last step")
	}
	if first.Age(byok.ReadTime); first.IsFresh() {
		t.Error("it is fresh after two seconds")
	}
	for name, step := range map[string]routing.Step{
		"shared endpoint":          {Provider: provider},
		"unknown credential":       {Provider: provider, Credential: "another"},
		"skipped credential":       {Provider: provider, Credential: restricted.ID},
		"step of an older reading": earlier,
		"another provider":         {Provider: "mistral", Credential: used.ID},
	} {
		if key, err := reading.Open(t.Context(), step); err == nil || key.Reveal() != nil {
			t.Errorf("%s: opened %q", name, key.Reveal())
		}
	}
}
