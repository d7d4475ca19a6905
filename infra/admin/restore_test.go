package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// restored is a stack after a restore of its access table to an earlier moment. The local
// DynamoDB cannot restore, so the items of that moment are put into another table.
type restored struct {
	*fixture
	db         *dynamodb.Client
	old        string // the table before the restore
	keys       map[string]ids.KeyHash
	workspaces map[string]ids.Workspace
	atMoment   []kit.Row // the access table as the restore left it
}

// newRestored makes an account, restores its access table to an earlier moment, and cuts
// some transactions in half. Keys and workspaces have names that describe their history.
func newRestored(d *fixture, restoredTo string) *restored {
	t := d.T
	t.Helper()
	r := &restored{
		fixture: d, db: dynamodb.NewFromConfig(d.engines.Config), old: d.engines.Tables.Access,
		keys: map[string]ids.KeyHash{}, workspaces: map[string]ids.Workspace{"default": d.workspace},
	}
	var other accountView
	r.json(&other, "account", "create", "Other")
	r.workspaces["foreign"] = ids.Workspace(other.Workspace)
	positions := auth.NewPositions(r.db, r.old, 0, 0)
	credential := func(w ids.Workspace) {
		position, err := positions.Next(t.Context(), r.account, w, "openai", 1)
		kit.Must(t, err)
		r.credential(w, position.SortOrder)
	}

	deleted := r.must("workspace", "create", "deleted since")
	r.workspaces["deleted since"] = ids.Workspace(deleted)
	for _, name := range []string{"kept", "disabled before", "disabled since", "deleted since", "half restored", "half deleted"} {
		r.newKey(name, r.workspace)
	}
	r.newKey("of a deleted workspace", ids.Workspace(deleted))
	r.newKey("unbound", "")
	r.must("key", "disable", string(r.keys["disabled before"]))
	credential(r.workspace)
	r.atMoment = r.table(r.old).All(t)

	r.must("key", "disable", string(r.keys["disabled since"]))
	r.must("key", "delete", string(r.keys["deleted since"]), "--yes")
	r.must("workspace", "delete", deleted, "--yes")
	credential(r.workspace)
	r.workspaces["made since"] = ids.Workspace(r.must("workspace", "create", "made since"))
	r.newKey("made since", "")
	credential(r.workspaces["made since"])

	// A restored table, and an old table from a backup, may have half of a transaction that
	// was under way: a list entry without its row, or a row without its list entry.
	bound := "workspace#" + string(r.workspace)
	r.table(r.old).Delete(t, kit.Key(bound, "key#"+string(r.keys["half deleted"])))
	r.atMoment = slices.DeleteFunc(r.atMoment, func(row kit.Row) bool {
		return kit.TextOf(row, "pk") == bound && kit.TextOf(row, "sk") == "key#"+string(r.keys["half restored"])
	})
	stray := kit.Key("account#"+string(r.account), "key#"+strings.Repeat("0", 64))
	stray["v"] = kit.Number("1")
	r.atMoment = append(r.atMoment, stray)
	d.engines.Tables.Access = restoredTo
	r.reset()
	r.writeStack()
	return r
}

func (r *restored) newKey(name string, w ids.Workspace) {
	r.Helper()
	r.keys[name] = ids.KeyHash(r.key(name, w))
}

func (r *restored) credential(w ids.Workspace, order int64) {
	r.Helper()
	r.seal(w, "n", func(d *byok.Draft) { d.SortOrder = order })
}

func (r *restored) reset() {
	r.Helper()
	r.table(r.engines.Tables.Access).Become(r, r.atMoment)
}

func (r *restored) repairArgs(more ...string) []string {
	return append([]string{"restore", "repair", "--before", r.old, "--yes"}, more...)
}

var unnamed = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// findings executes a command line, which must end with the code, and returns the listed
// findings, sorted, with names instead of ids.
func (r *restored) findings(code int, args ...string) (listed []string) {
	r.Helper()
	got := r.want(code, append([]string{"--json"}, args...)...)
	var found []findingView
	if err := json.Unmarshal([]byte(got.stdout), &found); err != nil {
		r.Fatalf("%v in %q; %s", err, got.stdout, got.stderr)
	}
	names := []string{string(r.account), "Acme", strings.Repeat("0", 64), "nobody's"}
	for name, id := range r.workspaces {
		names = append(names, string(id), name)
	}
	for name, hash := range r.keys {
		names = append(names, string(hash), name)
	}
	name := strings.NewReplacer(names...)
	for _, f := range found {
		problem, _, _ := strings.Cut(f.Problem, " at 20")
		line := fmt.Sprintf("%s: %s %s: %s", f.By, f.Kind, f.ID, problem)
		listed = append(listed, unnamed.ReplaceAllString(name.Replace(line), "ID"))
	}
	slices.Sort(listed)
	return listed
}

func (r *restored) wantFound(found []string, want ...string) {
	r.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, found); diff != "" {
		r.Errorf("found (-want +got):\n%s", diff)
	}
}

func without(found, before []string) []string {
	return slices.DeleteFunc(found, func(f string) bool { return slices.Contains(before, f) })
}

// wantLetIn checks the names of the keys that the live table lets in.
func (r *restored) wantLetIn(want ...string) {
	r.Helper()
	var names []string
	for name, hash := range r.keys {
		if _, err := auth.NewVerifier(r.db, r.engines.Tables.Access).Verify(r.Context(), hash); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		r.Errorf("let in %q, want %q", names, want)
	}
}

// left are the findings that a repair leaves. The restore has lost a workspace, and a credential
// was stored in it.
var left = []string{
	"none: list nobody's: without a row, in the list of account#Acme: it harms nobody",
	"operator: workspace made since: 1 credential of a workspace that does not exist",
}

func TestARepairedTableLetsInNoRevokedKey(t *testing.T) {
	t.Parallel()
	tables := kit.Start(t).NewTables(t, 3)
	r := newRestored(newOnEngines(t, tables...), tables[2])
	before := r.contents()
	r.wantLetIn("deleted since", "disabled since", "half deleted", "half restored", "kept", "of a deleted workspace", "unbound")
	r.wantFound(r.findings(acts.Done, r.repairArgs("--dry-run")...),
		"none: key made since: only in the table before: create it again if it is still wanted",
		"none: workspace made since: only in the table before: create it again if it is still wanted",
		"operator: workspace made since: 1 credential of a workspace that does not exist",
		"repair: counter default: the next sort_order of openai is 1, but 1 was given out",
		"repair: counter foreign: its number of credentials is the restored one",
		"repair: key deleted since: enabled, but not in the table before",
		"repair: key disabled since: enabled, but disabled in the table before",
		"repair: key half deleted: enabled, but in the table before: half deleted: a list lacks it",
		"repair: key half restored: enabled, but half deleted: a list lacks it",
		"repair: key of a deleted workspace: enabled, but disabled in the table before",
		"none: list nobody's: without a row, in the list of account#Acme: it harms nobody",
		"repair: list half restored: not in the list of workspace#default",
		"repair: workspace deleted since: live, but deleted in the table before",
	)
	if diff := cmp.Diff(before, r.contents()); diff != "" {
		t.Errorf("a check or a dry run changed (-before +after):\n%s", diff)
	}
	// It goes on after a failed write. Each of the nine leaves an audit line.
	r.broken().Inject(faults.Rule{Operation: "UpdateItem", Call: 2, Fault: faults.Answer(http.StatusBadRequest, "ValidationException", "")})
	got := r.want(acts.Uncertain, r.repairArgs()...)
	r.change = nil
	outcomes := map[any]int{}
	for _, line := range got.audits() {
		outcomes[line["outcome"]]++
	}
	want := map[any]int{"begun": 1, "done": 8, "refused": 1, "uncertain": 1} // the failed write, and the whole repair
	if diff := cmp.Diff(want, outcomes); diff != "" || strings.Count(got.stdout, " failed: ") != 1 || strings.Count(got.stdout, " repaired ") != 8 {
		t.Errorf("%s\nthe outcomes of the audit lines (-want +got):\n%s", got.stdout, diff)
	}
	r.want(acts.Uncertain, r.repairArgs()...)
	r.wantLetIn("kept", "unbound")
	r.wantFound(r.findings(acts.Uncertain, "restore", "check"), left...) // findings for the operator alone count too
	survey, err := auth.ReadSurvey(t.Context(), r.db, r.engines.Tables.Access)
	kit.Must(t, err)
	if survey.Workspaces[r.workspaces["deleted since"]].DeletedAt.IsZero() || survey.Workspaces[r.workspace].Next["openai"] != 2 {
		t.Errorf("a deleted workspace is live again, or a position is given out twice: %+v", survey.Workspaces)
	}
	// The findings are reported even if nobody reads the list.
	if got := r.unread(r.repairArgs()...); got.code != acts.Uncertain || !strings.Contains(got.stderr, "findings are left for you") {
		r.Errorf("unread: exit code %d, stderr %s", got.code, got.stderr)
	}
	if got := r.want(acts.Uncertain, r.repairArgs()...); len(got.audits()) > 0 {
		t.Errorf("the second repair: %v", got.audits())
	}
}

func ownAccount(r *restored) string { return "account#" + string(r.account) }

// A key stays enabled only if both tables show it enabled and unchanged. A damaged row
// counts as revoked: it is named, the exit code is not 0, and it stays revoked after somebody
// put it right.
func TestOnlyAnUnchangedKeyStaysEnabled(t *testing.T) {
	t.Parallel()
	r := newRestored(newFixture(t), kit.OtherAccess)
	before, live := r.table(r.old), r.table(r.engines.Tables.Access)
	stored := before.All(t)
	kept, unbound, workspace := "key#"+string(r.keys["kept"]), "key#"+string(r.keys["unbound"]), "workspace#"+string(r.workspace)
	const changed = "enabled, but of another account, kind, workspace or expiry in the table before"
	unreadable, yes := kit.Bool(false), kit.Bool(true)
	for _, c := range []struct {
		in    kit.Rows
		row   string
		set   string
		to    types.AttributeValue
		found string
		letIn string
	}{
		{before, kept, "v", kit.Number("0"), "operator: key kept: damaged in the table before: item version 0", "unbound"},
		{before, kept, "expires_at", kit.Number("4102444800"), "repair: key kept: " + changed, "unbound"},
		{before, kept, "workspace", kit.Text(string(r.workspaces["foreign"])), "repair: key kept: " + changed, "unbound"},
		{before, kept, "account", kit.Text(string(ids.New[ids.Account]())), "repair: key kept: " + changed, "unbound"},
		{before, unbound, "kind", kit.Text("management"), "repair: key unbound: " + changed, "kept"},
		{before, workspace, "name", unreadable, "operator: workspace default: damaged in the table before: name is of another type", "unbound"},
		{live, workspace, "name", unreadable, "operator: workspace default: damaged: name is of another type", "unbound"},
		{before, workspace, "deleted_at", kit.Number("1"), "repair: workspace default: live, but deleted in the table before", "unbound"},
		{before, "workspace#" + string(r.workspaces["foreign"]), "next", &types.AttributeValueMemberM{Value: kit.Row{"openai": kit.Number("99")}},
			"repair: counter foreign: the next sort_order of openai is 0, but 98 was given out", "kept unbound"},
		{before, ownAccount(r), "suspended", yes, "repair: account Acme: suspended in the table before", ""},
		{live, kept, "v", kit.Text("1"), "operator: key kept: damaged: v is of another type", "unbound"},
		{live, kept, "disabled", kit.Text("no"), "repair: key kept: enabled, but its row is damaged", "unbound"},
		{live, ownAccount(r), "suspended", yes, "repair: key kept: not suspended, but its account is", ""},
		{before, ownAccount(r), "name", unreadable, "operator: account Acme: damaged in the table before: name is of another type", ""},
		{live, ownAccount(r), "name", unreadable, "operator: account Acme: damaged: name is of another type", ""},
		{live, ownAccount(r), "v", kit.Number("0"), "operator: workspace deleted since: live, but deleted in the table before; its account is damaged", ""},
	} {
		r.reset()
		before.Become(t, stored)
		kind, _, _ := strings.Cut(c.row, "#")
		at := kit.Key(c.row, kind)
		sound := c.in.Get(t, at)[c.set]
		c.in.Set(t, at, c.set, c.to)
		if found := r.findings(acts.Uncertain, r.repairArgs()...); !slices.Contains(found, c.found) {
			t.Errorf("%s: found %q", c.found, found)
		}
		r.wantLetIn(strings.Fields(c.letIn)...)
		if c.in == live && c.set != "disabled" {
			live.Change(t, at, func(row kit.Row) {
				if row[c.set] = sound; sound == nil {
					delete(row, c.set)
				}
			})
			r.wantLetIn(strings.Fields(c.letIn)...)
		}
	}
}

// A row of a newer version is not damaged. A check and a repair that misread it would disable the
// keys of all customers.
func TestRowsOfANewerVersionAreRefused(t *testing.T) {
	t.Parallel()
	r := newRestored(newFixture(t), kit.OtherAccess)
	for _, table := range []string{r.old, r.engines.Tables.Access, r.engines.Tables.Credentials} {
		sound := r.table(table).All(t)
		for _, row := range sound {
			r.table(table).Set(t, row, "v", kit.Number("2"))
		}
		before, old := r.contents(), r.table(r.old).All(t)
		commands := [][]string{r.repairArgs(), r.repairArgs("--dry-run")}
		if table != r.old {
			commands = append(commands, []string{"restore", "check"}, []string{"restore", "repair", "--disable-all-keys", "--yes"})
		}
		for _, args := range commands {
			if got := r.want(acts.Refused, args...); got.stdout != "" || !strings.Contains(got.stderr, "written by a newer version") {
				t.Errorf("%v with newer rows in %s: %s%s", args, table, got.stdout, got.stderr)
			}
		}
		if diff := cmp.Diff(before, r.contents()); diff != "" || !reflect.DeepEqual(old, r.table(r.old).All(t)) {
			t.Errorf("newer rows in %s: changed (-before +after):\n%s", table, diff)
		}
		r.table(table).Become(t, sound)
	}
}

// set changes an attribute of a row of the access table: of key#…, workspace#… or account#….
func (d *fixture) set(row, attribute string, value types.AttributeValue) {
	d.Helper()
	kind, _, _ := strings.Cut(row, "#")
	d.table(d.engines.Tables.Access).Set(d, kit.Key(row, kind), attribute, value)
}

func TestRepairRefusesWrongArguments(t *testing.T) {
	t.Parallel()
	r := newRestored(newFixture(t), kit.OtherAccess)
	before := r.contents()
	refused := func(code int, want string, args ...string) {
		t.Helper()
		got := r.want(code, append([]string{"restore", "repair"}, args...)...)
		if !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%v: %s%s", args, got.stderr, got.stdout)
		}
	}
	refused(acts.Usage, "--before=OLD_TABLE or --disable-all-keys", "--before=", "--yes")
	refused(acts.Usage, "--before", "--before", r.old, "--disable-all-keys", "--yes")
	refused(acts.Usage, "itself", "--before", r.engines.Tables.Access, "--yes")
	refused(acts.Usage, "no table nosuch", "--before", "nosuch", "--yes")
	refused(acts.Usage, "nothing was changed", "--before", r.old)
	// A table that was restored to the same moment, or to an earlier one, has the revoked keys.
	for before, live := range map[string]string{"1700000000": "1700000000", "1600000000": "1700000000", "1500000000": ""} {
		r.describing(live, before)
		refused(acts.Usage, "restored to the state of", "--before", r.old, "--yes")
	}
	r.change = nil
	// A table that lacks a workspace is not the table just before the restore.
	workspace := r.table(r.old).Get(t, kit.Key("workspace#"+string(r.workspace), "workspace"))
	r.table(r.old).Delete(t, workspace)
	refused(acts.Refused, "it lacks 1 row (workspace "+string(r.workspace), r.repairArgs()[2:]...)
	r.table(r.old).Put(t, workspace)
	if diff := cmp.Diff(before, r.contents()); diff != "" {
		t.Errorf("a refusal changed (-before +after):\n%s", diff)
	}
	// The table's name confirms; confirm.txt has the question.
	r.change = func(a *app) { a.terminal, a.interactive = true, true }
	if got := r.feed(r.engines.Tables.Access+"\n", "restore", "repair", "--before", r.old); got.code != acts.Uncertain || cmp.Equal(before, r.contents()) {
		t.Errorf("a confirmed repair: exit code %d, %s", got.code, got.stderr)
	}
	r.change = nil
	r.reset()
	r.table(r.old).Delete(t, workspace)
	r.describing("1700000000", "1700000001")
	r.want(acts.Uncertain, r.repairArgs("--incomplete")...)
	r.wantLetIn("unbound")
}

// describing makes DescribeTable say to which moments the access table and the table before
// were restored. No moment means that a table was not restored.
func (r *restored) describing(moments ...string) {
	broken := r.broken()
	for i, moment := range moments {
		summary := ""
		if moment != "" {
			summary = `,"RestoreSummary":{"RestoreInProgress":false,"RestoreDateTime":` + moment + `}`
		}
		broken.Inject(faults.Rule{Operation: "DescribeTable", Call: i + 1, Fault: faults.Otherwise(http.StatusOK, `{"Table":{"TableName":"`+fmt.Sprint(i)+`"`+summary+`}}`)})
	}
}

// Without the table before, the check compares the live tables, and a repair disables every key.
func TestWithoutTheTableBefore(t *testing.T) {
	t.Parallel()
	r := newRestored(newFixture(t), kit.OtherAccess)
	table, before := r.engines.Tables.Access, r.findings(acts.Uncertain, "restore", "check")
	for _, name := range []string{"astray", "foreign", "orphan"} {
		r.newKey(name, r.workspace)
	}
	change := func(key, attribute, to string) {
		r.set("key#"+string(r.keys[key]), attribute, kit.Text(to))
	}
	change("astray", "workspace", string(ids.New[ids.Workspace]()))
	change("foreign", "workspace", string(r.workspaces["foreign"]))
	change("orphan", "account", string(ids.New[ids.Account]()))
	var other accountView // its default workspace is another account's
	r.json(&other, "account", "create", "other")
	r.set("account#"+string(other.ID), "default_workspace", kit.Text(string(r.workspaces["foreign"])))
	r.set("workspace#"+string(r.workspace), "deleted_at", kit.Number("1"))
	r.set("workspace#"+string(r.workspaces["deleted since"]), "name", kit.Bool(false)) // its key stays as it is
	for _, place := range [][2]string{{"key#broken", "key"}, {"somebody's", "item"}} {
		row := kit.Key(place[0], place[1])
		row["v"] = kit.Number("0")
		r.table(table).Put(t, row)
	}
	r.table(table).Set(t, kit.Key(ownAccount(r), "key#"+string(r.keys["unbound"])), "v", kit.Text("one"))
	r.credential(r.workspace, 0)
	r.seal(r.workspace, "n", func(d *byok.Draft) { d.SortOrder, d.Label = 7, "sbx...BCDE" })
	r.wantFound(without(r.findings(acts.Uncertain, "restore", "check"), before),
		"none: workspace default: 4 credentials of a deleted workspace: admin workspace purge",
		"none: credential ID: its key may be an API key of this service, by its label sbx...BCDE: routers refuse to send one. If it is, disable that API key and delete the credential",
		"operator: credential ID: has the same sort_order of openai, 0, as ID",
		"operator: item account#Acme key#unbound: not an item of the access table",
		"operator: item somebody's item: not an item of the access table",
		"operator: key broken: damaged: item version 0",
		"repair: key broken: enabled, but its account does not exist",
		"operator: workspace deleted since: damaged: name is of another type",
		"repair: account Acme: its default workspace is deleted or not its own",
		"repair: account ID: its default workspace is deleted or not its own",
		"operator: key astray: enabled, but its account does not have the workspace that it is bound to",
		"repair: key deleted since: enabled, but bound to a deleted workspace",
		"repair: key disabled since: enabled, but bound to a deleted workspace",
		"operator: key foreign: enabled, but its account does not have the workspace that it is bound to",
		"repair: key half deleted: enabled, but bound to a deleted workspace",
		"operator: key half restored: enabled, but bound to a deleted workspace",
		"repair: key kept: enabled, but bound to a deleted workspace",
		"repair: key of a deleted workspace: enabled, but its workspace is damaged",
		"operator: key orphan: enabled, but its account does not exist",
		"none: list orphan: without a row, in the list of account#Acme: it harms nobody",
		"repair: list orphan: not in the list of account#ID",
		"repair: list astray: not in the list of workspace#ID",
		"none: list astray: without a row, in the list of workspace#default: it harms nobody",
		"none: list foreign: without a row, in the list of workspace#default: it harms nobody",
		"repair: list foreign: not in the list of workspace#foreign",
	)
	got := r.want(acts.Uncertain, "restore", "repair", "--disable-all-keys", "--yes")
	if !strings.Contains(got.stderr, "so every key is disabled") {
		t.Errorf("stderr %s", got.stderr)
	}
	r.wantLetIn()
	for _, f := range r.findings(acts.Uncertain, "restore", "check") {
		if strings.HasPrefix(f, acts.ByRepair) {
			t.Errorf("left: %s", f)
		}
	}
}
