package routing_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

// fixture is an account with a workspace, and a router's reader whose calls are
// recorded and can be made to fail.
type fixture struct {
	engines   testkit.Engines
	db        *dynamodb.Client
	tenant    testkit.Tenant
	account   ids.Account
	workspace ids.Workspace // the account's default
	reader    *routing.Reader
	faults    *faults.Transport
}

func newFixture(t testing.TB, options ...func(*routing.Config)) *fixture {
	t.Helper()
	f := &fixture{engines: testkit.Start(t)}
	f.db = dynamodb.NewFromConfig(f.engines.Config)
	f.tenant = testkit.NewTenant(t, auth.NewRegistry(f.db, f.engines.Tables.Access))
	f.account, f.workspace = f.tenant.ID, f.tenant.Workspace
	f.faults = faults.Wrap(f.engines.Config.HTTPClient)
	config := f.engines.Config
	config.HTTPClient = f.faults
	c := routing.Config{
		AccessTable: f.engines.Tables.Access, CredentialsTable: f.engines.Tables.Credentials, SealingKeyARNs: []string{f.engines.KeyARN},
	}
	for _, option := range options {
		option(&c)
	}
	var err error
	f.reader, err = routing.NewReader(dynamodb.NewFromConfig(config), kms.NewFromConfig(config), c)
	testkit.Must(t, err)
	t.Cleanup(f.reader.Close)
	return f
}

func (f *fixture) manager() *byok.Manager { return byok.NewManager(f.db, f.engines.Tables.Credentials) }

// store stores a credential with the key "sk-secret".
func (f *fixture) store(t testing.TB, settings byok.Settings) byok.Credential {
	t.Helper()
	return f.storeKey(t, settings, []byte("sk-secret"))
}

func (f *fixture) storeKey(t testing.TB, settings byok.Settings, key []byte) byok.Credential {
	t.Helper()
	store := byok.NewStore(f.db, f.engines.Tables.Credentials, f.engines.Tables.Control,
		seal.NewSealer(kms.NewFromConfig(f.engines.Config), f.engines.KeyARN))
	settings.Provider = provider
	draft, err := store.Seal(t.Context(), f.account, f.workspace, byok.New{Settings: settings, Key: secret.New(key)})
	testkit.Must(t, err)
	testkit.Must(t, store.Create(t.Context(), draft))
	return draft.Credential
}

func (f *fixture) read(t testing.TB) *routing.Reading {
	t.Helper()
	reading, err := f.reader.Read(t.Context(), f.account, f.workspace, request("m"))
	testkit.Must(t, err)
	return reading
}

// open opens the first step of a new reading.
func (f *fixture) open(t testing.TB) (string, error) {
	t.Helper()
	reading := f.read(t)
	key, err := reading.Open(t.Context(), reading.Steps[0])
	return string(key.Reveal()), err
}

func (f *fixture) mustOpen(t testing.TB) {
	t.Helper()
	if key, err := f.open(t); key != "sk-secret" || err != nil {
		t.Fatalf("opened %q, %v", key, err)
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

// change changes the stored credential behind the service's back.
func (f *fixture) change(t *testing.T, c byok.Credential, change func(testkit.Row)) {
	t.Helper()
	key := testkit.Key("workspace#"+string(f.workspace), "credential#"+string(c.ID))
	testkit.Rows{DB: f.db, Table: f.engines.Tables.Credentials}.Change(t, key, change)
}

func TestAReadingCostsTwoReadsAndOneDecrypt(t *testing.T) {
	f := newFixture(t)
	f.store(t, byok.Settings{})
	for range 10 {
		f.mustOpen(t)
	}
	if query, get, decrypt := f.calls("Query"), f.calls("GetItem"), f.calls("Decrypt"); query != 10 || get != 10 || decrypt != 1 {
		t.Errorf("10 requests made %d queries, %d gets, %d decrypts", query, get, decrypt)
	}
	for _, c := range f.faults.Calls() {
		if c.Service == "DynamoDB" && c.Input["ConsistentRead"] != true {
			t.Errorf("%s is not strongly consistent", c.Operation)
		}
	}
}

// What the row says counts at the next request, with the opened key still kept.
func TestChangesCountAtTheNextRequest(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *fixture, byok.Credential) error{
		"disabled": func(t *testing.T, f *fixture, c byok.Credential) error {
			return f.manager().Disable(t.Context(), f.workspace, c.ID)
		},
		"deleted": func(t *testing.T, f *fixture, c byok.Credential) error {
			return f.manager().Delete(t.Context(), f.workspace, c.ID)
		},
		"restricted": func(t *testing.T, f *fixture, c byok.Credential) error {
			list, err := attributevalue.Marshal([]string{"n"})
			f.change(t, c, func(row testkit.Row) { row["allowed_models"] = list })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c := f.store(t, byok.Settings{})
			f.mustOpen(t)
			testkit.Must(t, change(t, f, c))
			if got := steps(f.read(t).Plan); !slices.Equal(got, []string{"openai shared"}) {
				t.Errorf("plan %v", got)
			}
		})
	}
	t.Run("moved", func(t *testing.T) {
		f := newFixture(t)
		f.store(t, byok.Settings{})
		f.mustOpen(t)
		f.change(t, f.store(t, byok.Settings{}), func(row testkit.Row) { row["account"] = testkit.Text("another") })
		if _, err := f.reader.Read(t.Context(), f.account, f.workspace, request("m")); !errors.Is(err, routing.ErrUnreadable) {
			t.Errorf("a row of another account: %v", err)
		}
	})
	for part, size := range map[string]int{"ciphertext": 40, "nonce": 12, "wrapped_key": 100} {
		t.Run("sealed otherwise: "+part, func(t *testing.T) {
			f := newFixture(t)
			c := f.store(t, byok.Settings{})
			f.mustOpen(t)
			f.change(t, c, func(row testkit.Row) {
				row["seal"].(*types.AttributeValueMemberM).Value[part] = &types.AttributeValueMemberB{Value: make([]byte, size)}
			})
			if key, err := f.open(t); err == nil || key != "" {
				t.Errorf("opened %q, %v", key, err)
			}
		})
	}
	t.Run("workspace deleted", func(t *testing.T) {
		f := newFixture(t)
		f.store(t, byok.Settings{})
		f.mustOpen(t)
		f.tenant.DeleteWorkspace(t, f.workspace)
		if _, err := f.reader.Read(t.Context(), f.account, f.workspace, request("m")); !errors.Is(err, routing.ErrNoWorkspace) {
			t.Errorf("a deleted workspace: %v", err)
		}
	})
}

func TestADamagedWorkspaceIsUnreadable(t *testing.T) {
	f := newFixture(t)
	key := testkit.Key("workspace#"+string(f.workspace), "workspace")
	testkit.Rows{DB: f.db, Table: f.engines.Tables.Access}.Set(t, key, "v", testkit.Number("2"))
	_, err := f.reader.Read(t.Context(), f.account, f.workspace, request("m"))
	if !errors.Is(err, routing.ErrUnreadable) || errors.Is(err, routing.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestAnotherAccountReadsNothing(t *testing.T) {
	f, stranger := newFixture(t), newFixture(t)
	f.store(t, byok.Settings{})
	for _, w := range []ids.Workspace{f.workspace, "00000000-0000-4000-8000-000000000000"} {
		if _, err := f.reader.Read(t.Context(), stranger.account, w, request("m")); !errors.Is(err, routing.ErrNoWorkspace) {
			t.Errorf("workspace %s: %v", w, err)
		}
	}
}

func TestOutages(t *testing.T) {
	f := newFixture(t)
	f.store(t, byok.Settings{})
	f.mustOpen(t)
	outage := faults.Answer(http.StatusBadRequest, "KMSInternalException", "no")
	f.faults.Inject(faults.Rule{Operation: "Decrypt", Fault: outage})
	f.mustOpen(t) // kept
	f.store(t, byok.Settings{Fallback: true})
	reading := f.read(t)
	if key, err := reading.Open(t.Context(), reading.Steps[2]); !errors.Is(err, routing.ErrUnavailable) || key.Reveal() != nil {
		t.Errorf("without KMS: %q, %v", key.Reveal(), err)
	}
	f.reader.Close()
	if key, err := f.open(t); !errors.Is(err, routing.ErrUnavailable) || key != "" {
		t.Errorf("without KMS, nothing kept: %q, %v", key, err)
	}
	for _, operation := range []string{"Query", "GetItem"} {
		f.faults.Heal()
		f.faults.Inject(faults.Rule{Operation: operation, Fault: faults.Refuse()})
		if _, err := f.reader.Read(t.Context(), f.account, f.workspace, request("m")); !errors.Is(err, routing.ErrUnavailable) {
			t.Errorf("without %s: %v", operation, err)
		}
	}
}

func TestAnEmptyKeyIsAnError(t *testing.T) {
	for name, keys := range map[string]int{"kept": 0, "not kept": -1} {
		f := newFixture(t, func(c *routing.Config) { c.Keys = keys })
		f.storeKey(t, byok.Settings{}, []byte{})
		if key, err := f.open(t); !errors.Is(err, seal.ErrCiphertext) || key != "" {
			t.Errorf("%s: opened %q, %v", name, key, err)
		}
	}
}

func TestAnUnknownStepOpensNothing(t *testing.T) {
	f := newFixture(t)
	f.store(t, byok.Settings{})
	reading := f.read(t)
	for _, step := range []routing.Step{{Provider: provider}, {Provider: provider, Credential: "another"}} {
		if key, err := reading.Open(t.Context(), step); err == nil || key.Reveal() != nil {
			t.Errorf("%+v opened %q", step, key.Reveal())
		}
	}
}

func TestAReaderNeedsItsConfiguration(t *testing.T) {
	whole := routing.Config{AccessTable: "a", CredentialsTable: "c", SealingKeyARNs: []string{"k"}}
	for name, remove := range map[string]func(*routing.Config){
		"access table":      func(c *routing.Config) { c.AccessTable = "" },
		"credentials table": func(c *routing.Config) { c.CredentialsTable = "" },
		"sealing keys":      func(c *routing.Config) { c.SealingKeyARNs = nil },
	} {
		c := whole
		remove(&c)
		if _, err := routing.NewReader(nil, nil, c); err == nil {
			t.Errorf("no error without %s", name)
		}
	}
}
