package main

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/infra/admin/rewrap"
	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// rewrapTable is made once: these tests run one after another.
var rewrapTable string

// move is a fixture with credentials that move to another sealing key. It has its own
// keys. Tests run one after another, so no other test writes the table.
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
	if rewrapTable == "" {
		rewrapTable = d.engines.NewTables(t, 1)[0]
	}
	d.engines.KeyARN, d.engines.Tables.Credentials = m.own, rewrapTable
	m.table(rewrapTable).Become(t, nil)
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
func (m *move) rewrap(code int, args ...string) (rewrap.Result, answer) {
	m.Helper()
	got := m.want(code, append([]string{"--json", "credentials", "rewrap", "--to", m.next, "--rate", "5000"}, args...)...)
	var view rewrap.Result
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
