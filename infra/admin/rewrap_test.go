package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// move is a fixture with credentials that move to another sealing key. It has keys and
// a table of its own.
type move struct {
	*fixture
	db         *dynamodb.Client
	kms        *kms.Client
	own, next  string
	keys       []string // all that were made here
	workspaces []ids.Workspace
}

func newMove(t testing.TB, credentials int) *move {
	t.Helper()
	d := newFixture(t)
	m := &move{fixture: d, db: dynamodb.NewFromConfig(d.engines.Config), kms: kms.NewFromConfig(d.engines.Config)}
	m.own, m.next = m.newKey(), m.newKey()
	d.engines.KeyARN, d.engines.Tables.Credentials = m.own, d.engines.NewTables(t, 1)[0]
	for range 3 {
		m.workspaces = append(m.workspaces, ids.New[ids.Workspace]())
	}
	m.writeStack()
	m.seed(credentials)
	return m
}

// seed stores many credentials as the API does, side by side.
func (m *move) seed(credentials int) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := next.Add(1); n <= int64(credentials); n = next.Add(1) {
				m.create(int(n))
			}
		})
	}
	all.Wait()
}

func (m *move) newKey() string {
	m.Helper()
	key := m.engines.Key(m)
	m.keys = append(m.keys, key)
	return key
}

func (m *move) create(n int) ids.Credential {
	m.Helper()
	return m.seal(m.workspaces[n%len(m.workspaces)], "n")
}

// deploy has new credentials sealed under the next key.
func (m *move) deploy() {
	m.Helper()
	m.sealing = m.next
	m.writeStack()
}

// rewrap runs the command that must end with the code, and reads its summary.
func (m *move) rewrap(code int, args ...string) (rewrapResult, answer) {
	m.Helper()
	got := m.want(code, append([]string{"--json", "credentials", "rewrap", "--to", m.next, "--rate", "5000"}, args...)...)
	var view rewrapResult
	if err := json.Unmarshal([]byte(got.stdout), &view); err != nil {
		m.Fatalf("%v in %q; %s", err, got.stdout, got.stderr)
	}
	return view, got
}

// rows are the stored credentials.
func (m *move) rows() map[ids.Credential]testkit.Credential {
	m.Helper()
	all := map[ids.Credential]testkit.Credential{}
	for _, row := range testkit.Credentials(m, m.table(m.engines.Tables.Credentials).All(m)) {
		all[row.ID] = row
	}
	return all
}

// opened opens every stored credential with all keys, as the router would
// while credentials are moved, and counts them by key.
func (m *move) opened() map[string]int {
	m.Helper()
	under := map[string]int{}
	opener := seal.NewOpener(m.kms, m.keys...)
	var mu sync.Mutex
	var all sync.WaitGroup
	turns := make(chan struct{}, 8)
	for id, row := range m.rows() {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			secret, err := row.Open(m.Context(), opener)
			if err != nil || string(secret.Reveal()) != providerKey {
				m.Errorf("credential %s opens as %q, %v", id, secret.Reveal(), err)
			}
			mu.Lock()
			defer mu.Unlock()
			under[row.Seal.KeyARN]++
		})
	}
	all.Wait()
	return under
}

// remove deletes a credential behind the command's back.
func (m *move) remove(row testkit.Credential) {
	m.Helper()
	if err := byok.NewManager(m.db, m.engines.Tables.Credentials).Delete(m.Context(), row.Workspace, row.ID); err != nil {
		m.Error(err)
	}
}

func TestRewrapMovesEveryCredential(t *testing.T) {
	t.Parallel()
	m := newMove(t, 40)
	before := m.rows()
	m.deploy()
	if survey := m.must("credential", "rewrap", "--to", m.next, "--dry-run"); !strings.Contains(survey, "40") || !strings.Contains(survey, "to be rewrapped") {
		t.Errorf("the dry run shows\n%s", survey)
	}
	if diff := cmp.Diff(before, m.rows()); diff != "" {
		t.Errorf("the dry run changed (-before +after):\n%s", diff)
	}
	view, got := m.rewrap(exit.Done)
	if view.Rewrapped != 40 || view.AlreadyThere != 0 || view.Changed != 0 || len(view.Failed) != 0 {
		t.Errorf("%+v", view)
	}
	var outcomes []any
	for _, line := range got.audits() {
		outcomes = append(outcomes, line["action"], line["outcome"], line["to"], line["rewrapped"])
	}
	if diff := cmp.Diff([]any{"credential.rewrap", "begun", m.next, nil, "credential.rewrap", "done", m.next, 40.0}, outcomes); diff != "" {
		t.Errorf("audit (-want +got):\n%s", diff)
	}
	after := m.rows()
	for id, row := range before {
		row.Seal.KeyARN, row.Seal.WrappedKey = m.next, after[id].Seal.WrappedKey
		before[id] = row
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("more than the wrapped key changed (-want +got):\n%s", diff)
	}
	if under := m.opened(); under[m.next] != 40 {
		t.Errorf("under the keys are %v", under)
	}
	if view, _ := m.rewrap(exit.Done); view.Rewrapped != 0 || view.AlreadyThere != 40 {
		t.Errorf("the second run: %+v", view)
	}
	if shown := m.must("credential", "rewrap", "--to", m.next); !strings.Contains(shown, "already there   40") {
		t.Errorf("shown\n%s", shown)
	}
}

func TestRewrapRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	m := newMove(t, 1)
	m.want(exit.Refused, "credential", "rewrap", "--to", m.next) // not deployed
	m.want(exit.Usage, "credential", "rewrap", "--to", m.own)    // from where?
	m.deploy()
	for _, args := range [][]string{
		{}, {"--to", "alias/next"}, {"--to", strings.TrimPrefix(m.next, "arn:aws:kms:us-east-1:000000000000:key/")},
		{"--to", "x" + m.next}, {"--to", m.next + "/x"},
		{"--to", m.next, "--rate", "0"}, {"--to", m.next, "--from", "x"},
	} {
		m.want(exit.Usage, append([]string{"credential", "rewrap"}, args...)...)
	}
	m.want(exit.Refused, "credential", "rewrap", "--to", m.own, "--from", m.next)
	if under := m.opened(); under[m.own] != 1 {
		t.Errorf("under the keys are %v", under)
	}
}

func TestRewrapKeepsToItsRate(t *testing.T) {
	t.Parallel()
	m := newMove(t, 40)
	m.deploy()
	if view, _ := m.rewrap(exit.Done, "--rate", "50"); view.Rewrapped != 40 || view.Seconds < 0.6 { // 5 pass at once
		t.Errorf("%+v", view)
	}
}

func TestAnInterruptedRewrapGoesOn(t *testing.T) {
	t.Parallel()
	m := newMove(t, 60)
	m.deploy()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	m.broken().Inject(faults.Rule{Operation: "UpdateItem", Call: 20, Fault: faults.Then(interrupt)})
	got := m.run(ctx, nil, "credential", "rewrap", "--to", m.next)
	if got.code != exit.Uncertain || !strings.Contains(got.stderr, "interrupted") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	if audits := got.audits(); len(audits) != 2 || audits[1]["outcome"] != "uncertain" {
		t.Errorf("audit %v", audits)
	}
	m.change = nil
	m.goesOn(60)
}

// goesOn runs the command to its end after one that did not come to it.
func (m *move) goesOn(total int) {
	m.Helper()
	under := m.opened()
	if under[m.own] == 0 || under[m.next] == 0 {
		m.Errorf("not in the middle: %v", under)
	}
	// The engine may still apply a write after its client is gone.
	if view, _ := m.rewrap(exit.Done); view.Rewrapped > under[m.own] || view.Rewrapped+view.AlreadyThere != total {
		m.Errorf("%+v after %v", view, under)
	}
	if after := m.opened(); after[m.next] != total {
		m.Errorf("under the keys are %v", after)
	}
}

// After two runs at once, while credentials come and go, every credential is moved and opens.
func TestTwoRewrapsAtOnce(t *testing.T) {
	t.Parallel()
	m := newMove(t, 50)
	m.deploy()
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if view, _ := m.rewrap(exit.Done, "--rate", "50"); len(view.Failed) > 0 {
				t.Errorf("%+v", view)
			}
		})
	}
	m.replace(20)
	both.Wait()
	if left := m.opened(); left[m.next] != 50 || left[m.own] != 0 {
		t.Errorf("left %v", left)
	}
}

func TestProgressOfARewrap(t *testing.T) {
	t.Parallel()
	m := newMove(t, 20)
	m.deploy()
	now := time.Now()
	m.change = func(a *app) {
		a.now = func() time.Time { now = now.Add(output.ProgressEvery); return now }
	}
	if _, got := m.rewrap(exit.Done); !strings.Contains(got.stderr, "\n7 of 20\n") || strings.Contains(got.stderr, "\r") {
		t.Errorf("a file gets\n%q", got.stderr)
	}
	from := m.next
	m.next = m.own // and back
	m.deploy()
	m.change = func(a *app) { a.terminal = true }
	if _, got := m.rewrap(exit.Done, "--from", from); !strings.Contains(got.stderr, fmt.Sprintf("(%d/%d", 20, 20)) || len(got.audits()) != 2 {
		t.Errorf("a terminal gets\n%q", got.stderr)
	}
}

func TestRewrapGivesUpWhereNothingCanSucceed(t *testing.T) {
	t.Parallel()
	m := newMove(t, 40)
	m.deploy()
	_, err := m.kms.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &m.own})
	testkit.Must(t, err)
	view, got := m.rewrap(exit.Uncertain)
	if view.Rewrapped != 0 || len(view.Failed) < failuresInARow || len(view.Failed) >= 40 || !strings.Contains(view.Failed[0].Reason, "DisabledException") {
		t.Errorf("%+v", view)
	}
	if !strings.Contains(got.stderr, "gave up") {
		t.Errorf("stderr %s", got.stderr)
	}
}

// It goes on however many fail, if others succeed between them.
func TestRewrapOutlastsScatteredFailures(t *testing.T) {
	t.Parallel()
	m := newMove(t, 3*(failuresInARow+2))
	m.deploy()
	broken := m.broken()
	for n := range failuresInARow + 2 {
		broken.Inject(faults.Rule{Operation: "ReEncrypt", Call: 3 * (n + 1), Fault: faults.Answer(http.StatusBadRequest, "KMSInvalidStateException", "")})
	}
	broken.Inject(faults.Rule{Operation: "Scan", Call: 1, Attempt: 1, Fault: faults.EmptyAnswer()}) // not the end of the table
	view, _ := m.rewrap(exit.Uncertain)
	if view.Rewrapped != 2*(failuresInARow+2) || len(view.Failed) != failuresInARow+2 {
		t.Fatalf("%+v", view)
	}
	failed := view.Failed[0]
	if row := m.rows()[failed.ID]; row.Workspace != failed.Workspace || row.Seal.KeyARN != m.own || !strings.Contains(failed.Reason, "KMSInvalidStateException") {
		t.Errorf("%+v is %+v", failed, row)
	}
	broken.Heal()
	m.goesOn(3 * (failuresInARow + 2))
}

// Rows that were sealed under a foreign key are not vouched for, and are
// no reason to leave the others, however many they are.
func TestRewrapTakesFromKnownKeysOnly(t *testing.T) {
	t.Parallel()
	m := newMove(t, 20)
	m.sealing = m.newKey()
	foreign := m.sealing
	planted := map[ids.Credential]bool{}
	for n := range failuresInARow + 2 {
		planted[m.create(n)] = true
	}
	m.deploy()
	if survey := m.must("credential", "rewrap", "--to", m.next, "--dry-run"); !strings.Contains(survey, "refused") {
		t.Errorf("the dry run shows\n%s", survey)
	}
	view, _ := m.rewrap(exit.Uncertain)
	if view.Rewrapped != 20 || len(view.Failed) != len(planted) || m.opened()[foreign] != len(planted) {
		t.Errorf("%+v", view)
	}
	shown := m.want(exit.Uncertain, "credential", "rewrap", "--to", m.next)
	for id := range planted {
		if !strings.Contains(shown.stdout, string(id)) || !strings.Contains(shown.stderr, "not all") {
			t.Errorf("%s: shown\n%s%s", id, shown.stdout, shown.stderr)
		}
	}
	if view, _ := m.rewrap(exit.Done, "--from", m.own, "--from", foreign); view.Rewrapped != len(planted) || m.opened()[m.next] != 20+len(planted) {
		t.Errorf("with the key named: %+v", view)
	}
}
