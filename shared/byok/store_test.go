package byok_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// vault is a store on real engines, seen from one new workspace.
type vault struct {
	*testing.T
	*byok.Store
	engines   testkit.Engines
	db        *dynamodb.Client
	broken    *faults.Transport
	account   ids.Account
	workspace ids.Workspace
	clock     *time.Time
	trusted   []string // keys to open with, besides the engines' own
}

func newVault(t *testing.T) *vault {
	t.Helper()
	engines := testkit.Start(t)
	v := &vault{T: t, engines: engines, db: dynamodb.NewFromConfig(engines.Config), broken: faults.Wrap(engines.Config.HTTPClient),
		account: ids.New[ids.Account](), workspace: ids.New[ids.Workspace](), clock: new(time.Now())}
	config := engines.Config
	config.HTTPClient = v.broken
	sealer := seal.NewSealer(kms.NewFromConfig(config), engines.KeyARN)
	v.Store = byok.NewStore(dynamodb.NewFromConfig(config), engines.Tables.Credentials, engines.Tables.Control, sealer).
		At(func() time.Time { return *v.clock })
	return v
}

func (v *vault) draft() byok.Draft {
	v.Helper()
	d, err := v.Seal(v.Context(), v.account, v.workspace, valid(key("sk-marker-0123456789"), models(), users("u1", "u2")))
	if err != nil {
		v.Fatal(err)
	}
	d.SortOrder = 7
	return d
}

// stored is what the table holds, every key opened.
func (v *vault) stored() []byok.Credential {
	v.Helper()
	credentials, seals, err := v.Stored(v.Context(), v.db, v.workspace)
	if err != nil {
		v.Fatal(err)
	}
	opener := seal.NewOpener(kms.NewFromConfig(v.engines.Config), append(v.trusted, v.engines.KeyARN)...)
	for i, c := range credentials {
		opened, err := opener.Open(v.Context(), seals[i], c.Binding())
		if err != nil || string(opened.Reveal()) != "sk-marker-0123456789" {
			v.Errorf("credential %s opens as %q, %v", c.ID, opened.Reveal(), err)
		}
	}
	return credentials
}

func request(n int) byok.RequestID {
	return byok.NewRequestID(fmt.Sprintf("%064d", n), string(ids.New[ids.Job]()))
}

func TestCreateStoresItWhole(t *testing.T) {
	v := newVault(t)
	if d := v.draft(); d.Label != "sk-...6789" || d.AllowedAPIKeyHashes != nil || d.AllowedModels == nil {
		t.Errorf("draft %+v", d.Credential)
	}
	want := map[ids.Credential]byok.Credential{}
	// A setting that got lost on the way would let more through than the caller meant.
	for _, change := range []func(*byok.Draft){
		func(*byok.Draft) {},
		func(d *byok.Draft) { d.AllowedAPIKeyHashes, d.AllowedUserIDs = []string{"a", "b", "a"}, nil },
		func(d *byok.Draft) { d.Disabled = true },
		func(d *byok.Draft) { d.BYOKOnly = true },
		func(d *byok.Draft) { d.Fallback = true },
		func(d *byok.Draft) { d.Required = true },
	} {
		d := v.draft()
		change(&d)
		want[d.ID] = d.Credential
		if err := v.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	got := map[ids.Credential]byok.Credential{}
	for _, c := range v.stored() {
		got[c.ID] = c
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func TestCreateSurvivesALostAnswer(t *testing.T) {
	v := newVault(t)
	d := v.draft()
	v.broken.Inject(faults.Rule{Operation: "PutItem", Attempt: 1, Fault: faults.LoseAnswer()})
	if err := v.Create(t.Context(), d); err != nil {
		t.Errorf("Create: %v", err)
	}
	if got := v.stored(); len(got) != 1 {
		t.Errorf("%d credentials are stored, want 1", len(got))
	}
}

func TestCreateOnceRemembers(t *testing.T) {
	v := newVault(t)
	id, fingerprint := request(1), []byte("print")
	first, err := v.CreateOnce(t.Context(), v.draft(), id, fingerprint, []byte("answer 1"))
	if err != nil || replayOf(t, first, fingerprint) != "" {
		t.Fatalf("first: %+v, %v", first, err)
	}
	again, err := v.Recall(t.Context(), id)
	if err != nil || replayOf(t, again, fingerprint) != "answer 1" {
		t.Errorf("recalled: %+v, %v", again, err)
	}
	if other, ok, err := again.Replay([]byte("other")); !errors.Is(err, byok.ErrDifferentRequest) || ok || other.Response != nil {
		t.Errorf("another request: %+v, %v, %v", other, ok, err)
	}
	late, err := v.CreateOnce(t.Context(), v.draft(), id, fingerprint, []byte("answer 2"))
	if err != nil || replayOf(t, late, fingerprint) != "answer 1" {
		t.Errorf("a second one: %+v, %v", late, err)
	}
	if got := v.stored(); len(got) != 1 {
		t.Errorf("%d credentials are stored, want 1", len(got))
	}

	// A little over a day, to the second.
	expires := time.Unix(v.clock.Add(25*time.Hour).Unix(), 0)
	*v.clock = expires.Add(-time.Second)
	if kept, err := v.Recall(t.Context(), id); err != nil || replayOf(t, kept, fingerprint) != "answer 1" {
		t.Errorf("within a day: %+v, %v", kept, err)
	}
	// Expired and, as DynamoDB may, not yet removed.
	*v.clock = expires
	if gone, err := v.Recall(t.Context(), id); err != nil || replayOf(t, gone, fingerprint) != "" {
		t.Errorf("after it expired: %+v, %v", gone, err)
	}
	anew, err := v.CreateOnce(t.Context(), v.draft(), id, fingerprint, []byte("answer 3"))
	if err != nil || replayOf(t, anew, fingerprint) != "" {
		t.Errorf("after it expired: %+v, %v", anew, err)
	}
}

func replayOf(t *testing.T, m byok.Remembered, fingerprint []byte) string {
	t.Helper()
	replayed, ok, err := m.Replay(fingerprint)
	if err != nil || ok != (replayed.Response != nil) || ok != (replayed.Credential != "") || ok != (replayed.Workspace != "") {
		t.Errorf("Replay = %+v, %v, %v", replayed, ok, err)
	}
	return string(replayed.Response)
}

func TestOfManyAtOnceOneIsCreated(t *testing.T) {
	v := newVault(t)
	id, fingerprint := request(2), []byte("print")
	var created atomic.Int64
	var all sync.WaitGroup
	for n := range 40 {
		d := v.draft()
		all.Go(func() {
			earlier, err := v.CreateOnce(context.WithoutCancel(t.Context()), d, id, fingerprint, fmt.Append(nil, n))
			if err != nil {
				t.Error(err)
			}
			if _, ok, _ := earlier.Replay(fingerprint); !ok {
				created.Add(1)
			}
		})
	}
	all.Wait()
	if got := v.stored(); len(got) != 1 || created.Load() != 1 {
		t.Errorf("%d credentials are stored and %d created, want 1", len(got), created.Load())
	}
}

// No local engine answers TransactionConflict by itself; DynamoDB does.
func TestCreateOnceOutlastsConflicts(t *testing.T) {
	v := newVault(t)
	fingerprint := []byte("print")
	conflict := faults.Cancel("None", "TransactionConflict")
	for call, fault := range []faults.Fault{conflict, faults.Cancel("TransactionConflict", ""), conflict} {
		v.broken.Inject(faults.Rule{Operation: "TransactWriteItems", Call: call + 1, Fault: fault})
	}
	earlier, err := v.CreateOnce(t.Context(), v.draft(), request(3), fingerprint, []byte("answer"))
	if err != nil || replayOf(t, earlier, fingerprint) != "" {
		t.Errorf("after three conflicts: %+v, %v", earlier, err)
	}

	// The one it conflicted with was the same request, and won.
	v.broken.Heal()
	id := request(4)
	if _, err := v.CreateOnce(t.Context(), v.draft(), id, fingerprint, []byte("winner")); err != nil {
		t.Fatal(err)
	}
	v.broken.Heal()
	v.broken.Inject(faults.Rule{Operation: "TransactWriteItems", Fault: conflict})
	earlier, err = v.CreateOnce(t.Context(), v.draft(), id, fingerprint, []byte("loser"))
	if err != nil || replayOf(t, earlier, fingerprint) != "winner" {
		t.Errorf("after losing: %+v, %v", earlier, err)
	}
	if got := v.stored(); len(got) != 2 {
		t.Errorf("%d credentials are stored, want 2", len(got))
	}
}

func TestCreateOnceReportsWhatWillNotPass(t *testing.T) {
	v := newVault(t)
	for _, reasons := range [][]string{{"ValidationError", "None"}, {"None", "ThrottlingError"}, {"ConditionalCheckFailed", "None"}, {"None", "None"}} {
		v.broken.Heal()
		v.broken.Inject(faults.Rule{Operation: "TransactWriteItems", Fault: faults.Cancel(reasons...)})
		if _, err := v.CreateOnce(t.Context(), v.draft(), request(5), nil, nil); err == nil {
			t.Errorf("%v: no error", reasons)
		}
	}
	if got := v.stored(); len(got) != 0 {
		t.Errorf("%d credentials are stored, want none", len(got))
	}
}
