package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/findings"
	"signalbox.dev/infra/admin/rewrap"
	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// restored is a stack after a restore of its access table to an earlier moment. The local
// DynamoDB cannot restore, so the table's items of that moment are put into another
// table.
type restored struct {
	*fixture
	history
	db  *dynamodb.Client
	old string // the table before the restore
}

// history is the life of some accounts before a restore.
type history struct {
	since       string
	owner       ids.Account
	workspaces  []ids.Workspace // the first is that account's default
	restored    []testkit.Row   // the access table as the restore left it
	last        []testkit.Row   // the access table before the restore
	credentials []testkit.Row
	keys        []auth.Key     // all that were ever made
	halved      []auth.KeyHash // the table before lacks a list entry of these
}

// The tables and histories are made once for all tests, which play one after another.
var (
	restoreTables []string
	histories     = map[uint64]history{}
)

// newRestored restores the history that the seed decides.
func newRestored(t *testing.T, seed uint64) *restored {
	t.Helper()
	d := newFixture(t)
	if restoreTables == nil {
		restoreTables = d.engines.NewTables(t, 3)
	}
	r := &restored{fixture: d, db: dynamodb.NewFromConfig(d.engines.Config), old: restoreTables[0]}
	d.engines.Tables.Access, d.engines.Tables.Credentials = r.old, restoreTables[1]
	if played, ok := histories[seed]; ok {
		r.history = played
	} else {
		r.table(r.old).Become(t, nil)
		r.table(restoreTables[1]).Become(t, nil)
		r.play(seed)
		histories[seed] = r.history
	}
	r.account, r.workspace = r.owner, r.workspaces[0]
	r.table(r.old).Become(t, r.last)
	r.table(restoreTables[1]).Become(t, r.credentials)
	d.engines.Tables.Access = restoreTables[2]
	r.reset()
	r.writeStack()
	return r
}

// play makes the history: accounts, workspaces, keys and credentials come and go,
// before the moment and after it.
func (r *restored) play(seed uint64) {
	r.Helper()
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a history, not a secret
	for range 2 {
		r.live(random, 20)
	}
	r.since = time.Now().UTC().Format(time.RFC3339)
	r.restored = r.table(r.old).All(r)
	for range 2 {
		r.live(random, 20)
	}
	// Of some transactions that were under way a restore has half: a list entry
	// is lost, or one is there without its row.
	r.restored = slices.DeleteFunc(r.restored, func(item testkit.Row) bool {
		return len(item) == 3 && random.IntN(6) == 0
	})
	stray := testkit.Key("account#"+string(r.owner), "key#"+strings.Repeat("0", 64))
	stray["v"] = testkit.Number("1")
	r.restored = append(r.restored, stray)
	// The table before the restore may come from a backup that has halves, too.
	for _, item := range r.table(r.old).All(r) {
		if strings.HasPrefix(testkit.TextOf(item, "sk"), "key#") && random.IntN(8) == 0 {
			r.table(r.old).Delete(r, item)
			r.halved = append(r.halved, auth.KeyHash(strings.TrimPrefix(testkit.TextOf(item, "sk"), "key#")))
		}
	}
	r.last, r.credentials = r.table(r.old).All(r), r.table(r.engines.Tables.Credentials).All(r)
}

// live makes an account and lets its operator and its callers do so much.
func (r *restored) live(random *rand.Rand, steps int) {
	r.Helper()
	ctx, registry, positions := r.Context(), auth.NewRegistry(r.db, r.engines.Tables.Access), auth.NewPositions(r.db, r.engines.Tables.Access, nil)
	account, workspace, err := registry.CreateAccount(ctx, "Acme")
	testkit.Must(r, err)
	if r.workspaces == nil {
		r.owner = account
	}
	r.workspaces = append(r.workspaces, workspace)
	owner := map[ids.Workspace]ids.Account{workspace: account}
	for range steps {
		// Of any account that was made so far, for those go on living.
		at := r.workspaces[random.IntN(len(r.workspaces))]
		survey := r.survey(r.engines.Tables.Access)
		found := survey.Workspaces[at]
		owner[at] = found.Account
		switch n := random.IntN(10); {
		case n == 0:
			w, err := registry.CreateWorkspace(ctx, owner[at], "more")
			testkit.Must(r, err)
			r.workspaces = append(r.workspaces, w)
		case n == 1 && at != r.workspaces[0]:
			err = registry.DeleteWorkspace(ctx, owner[at], at)
		case n <= 4:
			bound := at
			if n == 4 || !found.DeletedAt.IsZero() {
				bound = ""
			}
			var key auth.Key
			_, key, err = registry.CreateKey(ctx, auth.NewKey{Account: owner[at], Workspace: bound, Kind: auth.Standard, Name: "k"})
			r.keys = append(r.keys, key)
		case n <= 6 && len(r.keys) > 0:
			key := r.keys[random.IntN(len(r.keys))]
			change := registry.DisableKey
			if n == 5 {
				change = registry.DeleteKey
			}
			if row, ok := survey.Keys[key.Hash]; ok {
				err = change(ctx, row.Account, key.Hash)
			}
		case found.DeletedAt.IsZero():
			order, claimed := positions.Claim(ctx, owner[at], at, auth.Need{Provider: "openai"}, auth.Room{Credentials: 1000})
			if err = claimed; err == nil {
				r.credential(owner[at], at, order)
			}
		}
		testkit.Must(r, err)
	}
}

// credential stores the attributes of a credential that a restore reads.
func (r *restored) credential(account ids.Account, w ids.Workspace, order int64) {
	r.Helper()
	id := ids.New[ids.Credential]()
	r.table(r.engines.Tables.Credentials).Put(r, testkit.Row{
		"pk": testkit.Text("workspace#" + string(w)), "sk": testkit.Text("credential#" + string(id)), "v": testkit.Number("1"),
		"id": testkit.Text(string(id)), "account": testkit.Text(string(account)), "workspace": testkit.Text(string(w)),
		"provider": testkit.Text("openai"), "sort_order": testkit.Number(fmt.Sprint(order)),
	})
}

// reset brings the live table back to its state after the restore.
func (r *restored) reset() {
	r.Helper()
	r.table(r.engines.Tables.Access).Become(r, r.restored)
}

// contents are the items of the live table in an order of their own, without
// the time at which a workspace was deleted.
func (r *restored) contents() []string {
	r.Helper()
	var rows []map[string]any
	testkit.Must(r, attributevalue.UnmarshalListOfMaps(r.table(r.engines.Tables.Access).All(r), &rows))
	contents := make([]string, len(rows))
	for i, row := range rows {
		if _, deleted := row["deleted_at"]; deleted {
			row["deleted_at"] = "some time"
		}
		contents[i] = fmt.Sprint(row)
	}
	slices.Sort(contents)
	return contents
}

func (r *restored) repairArgs(more ...string) []string {
	return append([]string{"restore", "repair", "--since", r.since, "--before", r.old, "--yes"}, more...)
}

// findings executes a command line and reads the findings that it lists.
func (r *restored) findings(args ...string) (found []findings.Finding) {
	r.Helper()
	got := r.do(append([]string{"--json"}, args...)...)
	if err := json.Unmarshal([]byte(got.stdout), &found); err != nil {
		r.Fatalf("%v in %q; %s", err, got.stdout, got.stderr)
	}
	wrong := slices.ContainsFunc(found, func(f findings.Finding) bool { return f.By != findings.ByNone })
	if args[1] == "check" && (got.code != exit.Done) != wrong {
		r.Errorf("exit code %d with %+v", got.code, found)
	}
	return found
}

// letIn reports whether the table lets the key in.
func (r *restored) letIn(table string, key auth.KeyHash) bool {
	r.Helper()
	_, err := auth.NewVerifier(r.db, table).Verify(r.Context(), key)
	return err == nil
}

// revoked are the keys that the live table lets in although they were revoked or may
// be half deleted, by how that is known.
func (r *restored) revoked() map[string][]auth.KeyHash {
	r.Helper()
	entries := map[string]int{}
	for _, item := range r.restored {
		entries[testkit.TextOf(item, "sk")]++
	}
	old, found := r.survey(r.old), map[string][]auth.KeyHash{}
	for _, key := range r.keys {
		if !r.letIn(r.engines.Tables.Access, key.Hash) {
			continue
		}
		lists, was := 1, old.Keys[key.Hash]
		if key.Workspace != "" {
			lists = 2
		}
		for how, is := range map[string]bool{
			"deleted": was.Hash == "", "disabled": was.Disabled, "of a deleted workspace": !old.Workspaces[key.Workspace].DeletedAt.IsZero(),
			"half restored": entries["key#"+string(key.Hash)] < lists, "half in the old table": slices.Contains(r.halved, key.Hash),
		} {
			if is {
				found[how] = append(found[how], key.Hash)
			}
		}
	}
	return found
}

// checkRepaired makes sure that the live table lets no key in that was revoked, and has
// no workspace that was deleted.
func (r *restored) checkRepaired() {
	r.Helper()
	for how, keys := range r.revoked() {
		r.Errorf("let in again: %s: %v", how, keys)
	}
	old := r.survey(r.old)
	for id, w := range r.survey(r.engines.Tables.Access).Workspaces {
		if w.DeletedAt.IsZero() && !old.Workspaces[id].DeletedAt.IsZero() {
			r.Errorf("workspace %s is live again", id)
		}
	}
	for _, f := range r.findings("restore", "check") {
		if f.By != findings.ByNone && !strings.Contains(f.Problem, " of a workspace that does not exist") {
			r.Errorf("found after the repair: %+v", f)
		}
	}
	r.checkCounters()
}

// checkCounters makes sure that new credentials get places of their own.
func (r *restored) checkCounters() {
	r.Helper()
	survey := r.survey(r.engines.Tables.Access)
	placements, err := byok.Survey(r.Context(), r.db, r.engines.Tables.Credentials)
	testkit.Must(r, err)
	for _, p := range placements {
		if w, ok := survey.Workspaces[p.Workspace]; ok && w.Next["openai"] <= p.SortOrder {
			r.Errorf("workspace %s gives out %d, and a credential has %d", p.Workspace, w.Next["openai"], p.SortOrder)
		}
	}
	for id, was := range r.survey(r.old).Workspaces {
		if w, ok := survey.Workspaces[id]; ok && was.Fault == nil && w.Next["openai"] < was.Next["openai"] {
			r.Errorf("workspace %s gives out %d, and gave out %d before", id, w.Next["openai"], was.Next["openai"]-1)
		}
	}
}

func (r *restored) survey(table string) *auth.Survey {
	r.Helper()
	survey, err := auth.ReadSurvey(r.Context(), r.db, table)
	testkit.Must(r, err)
	return survey
}

func TestARepairedTableLetsInNobodyWhoWasRevoked(t *testing.T) {
	cases := map[string]int{}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newRestored(t, seed)
			before := r.contents()
			for how, keys := range r.revoked() {
				cases[how] += len(keys)
			}
			r.want(exit.Uncertain, "restore", "check")
			r.must(r.repairArgs("--dry-run")...)
			if diff := cmp.Diff(before, r.contents()); diff != "" {
				t.Errorf("a check or a dry run changed (-before +after):\n%s", diff)
			}
			r.repaired()
			after := r.contents()
			r.checkRepaired()
			if got := r.want(exit.Uncertain, r.repairArgs()...); len(got.audits()) > 0 {
				t.Errorf("the second repair: %v", got.audits())
			}
			if diff := cmp.Diff(after, r.contents()); diff != "" {
				t.Errorf("the second repair changed (-before +after):\n%s", diff)
			}
			// A moment that is too early shows no key to be newer.
			r.reset()
			r.since = "2026-01-01T00:00:00Z"
			r.repaired()
			if diff := cmp.Diff(after, r.contents()); diff != "" {
				t.Errorf("with another --since (-before +after):\n%s", diff)
			}
		})
	}
	if len(cases) < 5 {
		t.Errorf("the seeds reach %v alone", cases)
	}
}

// repaired repairs. What only the old table has is left for the operator, and said.
func (r *restored) repaired() {
	r.Helper()
	if got := r.want(exit.Uncertain, r.repairArgs()...); !strings.Contains(got.stderr, "findings are left for you") {
		r.Errorf("stderr %s", got.stderr)
	}
}

// A repair that is interrupted after any of its writes goes on when it is repeated.
func TestAnInterruptedRepairGoesOn(t *testing.T) {
	r := newRestored(t, 1)
	r.repaired()
	want := r.contents()
	for writes := 1; ; writes++ {
		r.reset()
		ctx, interrupt := context.WithCancel(t.Context())
		seen := 0
		broken, counted := r.broken(), faults.Then(func() {
			if seen++; seen == writes {
				interrupt()
			}
		})
		broken.Inject(faults.Rule{Operation: "UpdateItem", Fault: counted})
		broken.Inject(faults.Rule{Operation: "TransactWriteItems", Fault: counted})
		got := r.run(ctx, nil, r.repairArgs()...)
		interrupt()
		r.change = nil
		if seen < writes {
			if writes < 10 {
				t.Fatalf("the repair made %d writes", seen)
			}
			return
		}
		if got.code != exit.Uncertain && seen > writes {
			t.Errorf("interrupted at write %d: exit code %d, %s", writes, got.code, got.stderr)
		}
		r.repaired()
		if diff := cmp.Diff(want, r.contents(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("interrupted at write %d (-want +got):\n%s", writes, diff)
		}
	}
}

// Only a key that is shown to be newer than the restore stays without a row in the old
// table. The clock of its maker may have been ahead.
func TestAKeyMadeAfterTheRestoreStays(t *testing.T) {
	r := newRestored(t, 1)
	now := time.Now().Add(3 * time.Hour)
	stamps := map[time.Duration]bool{6 * time.Minute: false, 50 * time.Minute: false, 2 * time.Hour: true, 3*time.Hour + time.Minute: false}
	hashes := map[time.Duration]auth.KeyHash{}
	for after := range stamps {
		var key createdKeyView
		r.json(&key, "key", "create", "fresh", "--account", string(r.account))
		hashes[after] = key.Hash
		made := fmt.Sprint(time.Now().Add(after).Unix())
		r.set(r.engines.Tables.Access, "key#"+string(key.Hash), "key", "created_at", testkit.Number(made))
	}
	r.change = func(a *app) { a.now = func() time.Time { return now } }
	if found := fmt.Sprint(r.findings(r.repairArgs()...)); !strings.Contains(found, "made after the restore") {
		t.Errorf("found %s", found)
	}
	for after, stays := range stamps {
		if r.letIn(r.engines.Tables.Access, hashes[after]) != stays {
			t.Errorf("a key that was made %s after the restore is let in: %t", after, !stays)
		}
	}
}

// A difference between the tables that no repair can settle is listed, and a row of the
// old table counts whole or not at all.
func TestARepairReportsWhatItCannotSettle(t *testing.T) {
	r := newRestored(t, 1)
	r.set(r.old, "account#"+string(r.account), "account", "default_workspace", testkit.Text("another"))
	next := &types.AttributeValueMemberM{Value: testkit.Row{"openai": testkit.Number("99")}}
	r.set(r.old, "workspace#"+string(r.workspaces[1]), "workspace", "next", next)
	spoilt := r.workspaces[0]
	r.set(r.old, "workspace#"+string(spoilt), "workspace", "next", next)
	r.set(r.old, "workspace#"+string(spoilt), "workspace", "name", &types.AttributeValueMemberBOOL{})
	i := slices.IndexFunc(r.keys, func(k auth.Key) bool {
		return r.letIn(r.old, k.Hash) && r.letIn(r.engines.Tables.Access, k.Hash)
	})
	damaged := r.keys[i].Hash
	r.set(r.old, "key#"+string(damaged), "key", "v", testkit.Number("2"))
	found := fmt.Sprint(r.findings(r.repairArgs()...))
	for _, want := range []string{
		"only in the old table: made at", "its default workspace was another", string(r.workspaces[1]) + " " + string(r.account) + " the next sort_order",
		"{workspace " + string(spoilt) + "  unreadable in the old table: stored ", "{key " + string(damaged) + "  unreadable in the old table",
	} {
		if !strings.Contains(found, want) {
			t.Errorf("no %q in %s", want, found)
		}
	}
	if strings.Count(found, "raise it to 99") != 1 || r.letIn(r.engines.Tables.Access, damaged) {
		t.Errorf("found %s", found)
	}
}

// A repair goes on after one that fails, unless many in a row do, and leaves an audit
// line of each.
func TestARepairGoesOnAfterOneThatFails(t *testing.T) {
	r := newRestored(t, 1)
	refused := faults.Answer(http.StatusBadRequest, "ValidationException", "")
	for failures, rules := range map[int][]faults.Rule{
		1:               {{Operation: "UpdateItem", Call: 2, Fault: refused}},
		rewrap.Patience: {{Operation: "UpdateItem", Fault: refused}, {Operation: "TransactWriteItems", Fault: refused}},
	} {
		r.reset()
		broken := r.broken()
		for _, rule := range rules {
			broken.Inject(rule)
		}
		got := r.want(exit.Uncertain, r.repairArgs()...)
		var outcomes []any
		for _, line := range got.audits() {
			outcomes = append(outcomes, line["outcome"])
		}
		failed, repaired := strings.Count(got.stdout, " failed: "), strings.Count(got.stdout, " repaired\n")
		want := slices.Concat([]any{"begun", "done", "uncertain"}, slices.Repeat([]any{"done"}, max(repaired-1, 0)), []any{"uncertain"})
		if failures > 1 {
			want = slices.Concat([]any{"begun"}, slices.Repeat([]any{"refused"}, failures), []any{"uncertain"})
		}
		if diff := cmp.Diff(want, outcomes); diff != "" || failed != failures || failures == 1 && repaired < 2 {
			t.Errorf("%d failed, %d repaired; the outcomes of the audit lines (-want +got):\n%s", failed, repaired, diff)
		}
	}
	r.change = nil
	r.repaired()
	r.checkRepaired()
}

func (d *fixture) set(table, pk, sk, attribute string, value types.AttributeValue) {
	d.Helper()
	d.table(table).Set(d, testkit.Key(pk, sk), attribute, value)
}

func TestRepairRefusesWhatCannotBeMeant(t *testing.T) {
	r := newRestored(t, 1)
	older := r.engines.NewTables(t, 1)[0]
	for _, item := range r.table(r.old).All(t) {
		if testkit.TextOf(item, "pk") != "workspace#"+string(r.workspaces[0]) {
			r.table(older).Put(t, item)
		}
	}
	before := r.contents()
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{exit.Usage, "--since", nil},
		{exit.Usage, "future", []string{"--since", time.Now().Add(time.Hour).Format(time.RFC3339), "--yes"}},
		{exit.Usage, "itself", []string{"--since", r.since, "--before", r.engines.Tables.Access, "--yes"}},
		{exit.Usage, "no table nosuch", []string{"--since", r.since, "--before", "nosuch", "--yes"}},
		{exit.Usage, "no account", []string{"--since", r.since, "--before", r.engines.Tables.Credentials, "--yes"}},
		{exit.Usage, `"tomorrow" is not a time`, []string{"--since", "tomorrow"}},
		{exit.Refused, "it lacks 1 row (workspace " + string(r.workspaces[0]), []string{"--since", r.since, "--before", older, "--yes"}},
		{exit.Usage, "nothing was changed", []string{"--since", r.since, "--before", r.old}},
	} {
		got := r.want(c.code, append([]string{"restore", "repair"}, c.args...)...)
		if !strings.Contains(got.stderr, c.want) || got.stdout != "" {
			t.Errorf("%v: %s%s", c.args, got.stderr, got.stdout)
		}
	}
	if diff := cmp.Diff(before, r.contents()); diff != "" {
		t.Errorf("a refusal changed (-before +after):\n%s", diff)
	}
	// On a terminal it asks, after it has named its target.
	for typed, code := range map[string]int{"yes\n": exit.Refused, "": exit.Refused, "TABLE\n": exit.Uncertain} {
		r.reset()
		typed = strings.ReplaceAll(typed, "TABLE", r.engines.Tables.Access)
		got := r.typed(typed, "restore", "repair", "--since", r.since, "--before", r.old)
		if got.code != code {
			t.Errorf("typed %q: exit code %d, want %d", typed, got.code, code)
		}
		if !strings.Contains(got.stderr, "The access table "+r.engines.Tables.Access) || cmp.Equal(before, r.contents()) != (code == exit.Refused) {
			t.Errorf("typed %q: %s", typed, got.stderr)
		}
	}
}

// Without the old table a repair has the restored tables alone.
func TestRepairWithoutTheOldTable(t *testing.T) {
	r := newRestored(t, 2)
	table, shared := r.engines.Tables.Access, r.workspaces[0]
	pk := "workspace#" + string(shared)
	i := slices.IndexFunc(r.workspaces, func(w ids.Workspace) bool { return r.survey(table).Workspaces[w].Account != r.account })
	var bound, astray, foreign, orphan createdKeyView
	for _, key := range []*createdKeyView{&bound, &astray, &foreign, &orphan} {
		r.json(key, "key", "create", "bound", "--account", string(r.account), "--workspace", string(shared))
	}
	r.set(table, "key#"+string(astray.Hash), "key", "workspace", testkit.Text(string(ids.New[ids.Workspace]())))
	r.set(table, "key#"+string(foreign.Hash), "key", "workspace", testkit.Text(string(r.workspaces[i])))
	r.set(table, "key#"+string(orphan.Hash), "key", "account", testkit.Text(string(ids.New[ids.Account]())))
	r.set(table, pk, "workspace", "deleted_at", testkit.Number("1"))
	r.table(table).Put(t, testkit.Row{"pk": testkit.Text("key#broken"), "sk": testkit.Text("key"), "v": testkit.Number("2")})
	r.table(table).Put(t, testkit.Row{"pk": testkit.Text("somebody's"), "sk": testkit.Text("item"), "v": testkit.Number("1")})
	r.credential(r.account, shared, 0)
	r.credential(r.account, shared, 0)
	found := fmt.Sprint(r.findings("restore", "check"))
	for _, want := range []string{
		"bound to a deleted workspace", "does not have the workspace", "its account does not exist", "its default workspace is deleted", "unreadable: item version 2", "somebody's item",
		"has sort_order 0 of openai, as", " of a deleted workspace",
	} {
		if !strings.Contains(found, want) {
			t.Errorf("no %q in %s", want, found)
		}
	}
	got := r.want(exit.Uncertain, "restore", "repair", "--since", r.since, "--yes")
	if !strings.Contains(got.stderr, "it is not known what was revoked after "+r.since) {
		t.Errorf("stderr %s", got.stderr)
	}
	for _, key := range []createdKeyView{bound, astray, foreign, orphan} {
		if r.letIn(table, key.Hash) {
			t.Errorf("key %s is let in", key.Hash.Short())
		}
	}
	r.checkCounters()
	for _, f := range r.findings("restore", "check") {
		if f.By == findings.ByRepair {
			t.Errorf("left %+v", f)
		}
	}
}
