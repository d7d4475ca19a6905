package byok_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/smithy-go/middleware"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

const providerKey = "sk-marker-0123456789"

var fingerprint = []byte("fingerprint")

// fixture is a new workspace on real engines. Its store, manager and rewraps meet
// faults; db and kms do not.
type fixture struct {
	*testing.T
	store   *byok.Store
	manager *byok.Manager
	rewraps *byok.WrappedKeys
	faults  *faults.Transport

	env       kit.Engines
	faulty    aws.Config
	db        *dynamodb.Client
	kms       *kms.Client
	account   ids.Account
	workspace ids.Workspace
	clock     *time.Time
	keys      []string // KMS keys that credentials may be sealed under
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	env := kit.Start(t)
	f := &fixture{T: t, env: env, faulty: env.Config, faults: faults.Wrap(env.Config.HTTPClient),
		db: dynamodb.NewFromConfig(env.Config), kms: kms.NewFromConfig(env.Config),
		account: ids.New[ids.Account](), workspace: ids.New[ids.Workspace](), clock: new(time.Now()), keys: []string{env.Tables.SealingKey}}
	f.faulty.HTTPClient, f.faulty.APIOptions = f.faults, []func(*middleware.Stack) error{calls.RefuseMalformed} // as every client has it
	db, sealer := dynamodb.NewFromConfig(f.faulty), seal.NewSealer(kms.NewFromConfig(f.faulty), env.Tables.SealingKey)
	f.store = byok.NewStore(db, env.Tables.Credentials, env.Tables.Control, sealer).At(func() time.Time { return *f.clock })
	f.manager = byok.NewManager(db, env.Tables.Credentials)
	f.rewraps = byok.NewWrappedKeys(db, env.Tables.Credentials)
	return f
}

func validCredential() byok.New {
	return byok.New{Key: secret.New([]byte(providerKey)), Settings: byok.Settings{
		Provider: "openai", Name: "n", AllowedModels: []string{}, AllowedUserIDs: []string{"u1", "u2"},
	}}
}

func (f *fixture) newDraft() byok.Draft {
	f.Helper()
	d, err := f.store.Seal(f.Context(), f.account, f.workspace, validCredential())
	kit.Must(f, err)
	d.SortOrder = 7
	return d
}

func (f *fixture) newCredential() byok.Credential {
	f.Helper()
	d := f.newDraft()
	kit.Must(f, f.store.Create(f.Context(), d))
	return d.Credential
}

// rows reads the workspace's credentials and their seals.
func (f *fixture) rows() []byok.Stored {
	f.Helper()
	rows, err := byok.ReadAll(f.Context(), f.db, f.env.Tables.Credentials, f.account, f.workspace)
	kit.Must(f, err)
	return rows
}

// stored reads the workspace's credentials and opens their seals.
func (f *fixture) stored() (credentials []byok.Credential) {
	f.Helper()
	opener := seal.NewOpener(f.kms, f.keys...)
	for _, row := range f.rows() {
		opened, err := opener.Open(f.Context(), row.Sealed, row.Binding())
		if err != nil || string(opened.Reveal()) != providerKey {
			f.Errorf("credential %s opens as %q, %v", row.ID, opened.Reveal(), err)
		}
		credentials = append(credentials, row.Credential)
	}
	return credentials
}

// wrappedKeys reads the wrapped keys of the workspace: other tests use the same
// table.
func (f *fixture) wrappedKeys() (own []byok.WrappedKey) {
	f.Helper()
	const segments = 3
	for segment := range int32(segments) {
		for page, err := range f.rewraps.Pages(f.Context(), segment, segments) {
			kit.Must(f, err)
			for _, w := range page {
				if w.Workspace == f.workspace {
					own = append(own, w)
				}
			}
		}
	}
	return own
}

// newWrappedKey stores the workspace's first credential and reads its wrapped key.
func (f *fixture) newWrappedKey() byok.WrappedKey {
	f.Helper()
	f.newCredential()
	defer f.faults.Heal()
	return f.wrappedKeys()[0]
}

func (f *fixture) newKey() string {
	f.Helper()
	key := f.env.Key(f)
	f.keys = append(f.keys, key)
	return key
}

// rewrapper moves data keys of the engines' KMS key to another one.
func (f *fixture) rewrapper(to string) *seal.Rewrapper {
	return seal.NewRewrapper(kms.NewFromConfig(f.faulty), to, f.env.Tables.SealingKey)
}

// move moves the credential without faults, as another run at the same time would.
func (f *fixture) move(w byok.WrappedKey, from, to string) {
	f.Helper()
	rewraps := byok.NewWrappedKeys(f.db, f.env.Tables.Credentials)
	if got, err := rewraps.Rewrap(f.Context(), w, seal.NewRewrapper(f.kms, to, from)); got != byok.Moved || err != nil {
		f.Errorf("moving: %v, %v", got, err)
	}
}

// rewriteRow changes the workspace's one row.
func (f *fixture) rewriteRow(change func(kit.Row)) {
	f.Helper()
	table := kit.Rows{DB: f.db, Table: f.env.Tables.Credentials}
	rows := slices.DeleteFunc(table.All(f), func(row kit.Row) bool { return kit.TextOf(row, "pk") != "workspace#"+string(f.workspace) })
	if len(rows) != 1 {
		f.Fatalf("%d rows, want 1", len(rows))
	}
	table.Change(f, rows[0], change)
}

// createOnce stores a new credential under the id, or returns the replayed
// response.
func (f *fixture) createOnce(id byok.RequestID, response string) (replayed string) {
	f.Helper()
	answer, err := f.store.CreateOnce(f.Context(), f.newDraft(), id, fingerprint, []byte(response))
	return f.replay(answer, err)
}

func (f *fixture) replay(answer byok.Answer, err error) string {
	f.Helper()
	kit.Must(f, err)
	if is := answer.Exists(); is != answer.IsFor(fingerprint) || is != (answer.Workspace != "") {
		f.Errorf("%+v", answer)
	}
	return answer.Response
}

// newRequest is the id of a new idempotent request.
func newRequest() byok.RequestID {
	return byok.NewRequestID("hash", string(ids.New[ids.Credential]()))
}
