package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// A leaked key is found and disabled even if all other rows are damaged.
func TestNoDamageStopsARevocation(t *testing.T) {
	t.Parallel()
	d := newApart(t)
	var other accountView
	d.json(&other, "account", "create", "Other")
	account, workspace := " --account "+string(d.account), " --workspace "+string(d.workspace)
	d.must("workspace", "create", "second")
	key := d.must("key", "create", "leaked")
	hash := string(auth.HashKey(key))
	credential := string(d.seal(d.workspace, "leaked"))

	// shows runs a command that must succeed and show the text. Its input is the key.
	shows := func(text, command string) {
		t.Helper()
		if got := d.feed(key, strings.Fields(command)...); got.code != exit.Done || !strings.Contains(got.stdout, text) {
			t.Errorf("admin %s: exit code %d\n%s%s", command, got.code, got.stdout, got.stderr)
		}
	}
	access := d.table(d.engines.Tables.Access)
	for _, row := range access.All(t) {
		if kit.TextOf(row, "sk") != "key" {
			access.Set(t, row, "v", kit.Text("one"))
		}
	}
	for _, in := range []string{"", account} {
		shows(hash[:8], "key find -"+in)
		shows("disabled", "key disable "+hash+in)
		shows("disabled", "key find leaked"+in)
		shows("active", "key enable "+hash[:8]+in)
		for _, in := range []string{in, in + workspace} {
			shows(credential[:8], "credential find leaked"+in)
			shows("disabled", "credential disable "+credential+in)
			shows("active", "credential enable "+credential[:8]+in)
		}
	}
	d.want(exit.NotFound, strings.Fields("key disable "+hash+" --account "+string(other.ID))...)
	d.want(exit.NotFound, strings.Fields("credential disable "+credential+workspace+" --account "+string(other.ID))...)

	// A restored table may have a key without its list entry.
	access.Delete(t, kit.Key("account#"+string(d.account), "key#"+hash))
	shows("disabled", "key disable "+hash+account)
	shows("active", "key enable "+hash[:8])

	// In a search of one workspace, an unreadable credential hides the others. With the whole
	// id each can still be disabled.
	spoilt := string(d.seal(d.workspace, "spoilt"))
	d.set(d.engines.Tables.Credentials, "workspace#"+string(d.workspace), "credential#"+spoilt, "name", &types.AttributeValueMemberBOOL{})
	shows(credential[:8], "credential find leaked")
	for _, id := range []string{credential, spoilt} {
		shows("disabled", "credential disable "+id+workspace)
		shows("disabled", "credential disable "+id+workspace+account)
		got := d.want(exit.Failed, strings.Fields("credential disable "+id+account)...)
		if !strings.Contains(got.stderr, "cannot be read, which hides the others") || !strings.Contains(got.stderr, "give --workspace and the whole id") {
			t.Errorf("credential %s: %s", id, got.stderr)
		}
	}
	d.want(exit.Uncertain, "key", "delete", hash, "--yes") // the unreadable one may list it
	shows("disabled", "key find -")
}

// Beside an unreadable credential, no command shows one that it has not read.
func TestAnUnreadableCredentialIsNotShown(t *testing.T) {
	t.Parallel()
	d := newApart(t)
	spoilt := string(d.seal(d.workspace, "spoilt"))
	d.set(d.engines.Tables.Credentials, "workspace#"+string(d.workspace), "credential#"+spoilt, "name", &types.AttributeValueMemberBOOL{})
	for _, in := range []string{"", " --workspace " + string(d.workspace), " --account " + string(d.account)} {
		for _, id := range []string{spoilt, string(ids.New[ids.Credential]())} {
			got := d.want(exit.Failed, strings.Fields("credential show "+id+in)...)
			if got.stdout != "" || !strings.Contains(got.stderr, "admin restore check") {
				t.Errorf("credential %s%s: %s%s", id, in, got.stdout, got.stderr)
			}
		}
	}
	d.want(exit.NotFound, "credential", "disable", string(ids.New[ids.Credential]()), "--workspace", string(d.workspace))
	second := d.must("workspace", "create", "second")
	all := []string{"credential", "list", "--all-workspaces"}
	if got := d.want(exit.Failed, all...); got.stdout != "" || strings.Contains(got.stderr, "Nothing was found") {
		t.Errorf("no readable one: %s%s", got.stdout, got.stderr)
	}
	readable := d.seal(ids.Workspace(second), "readable")
	if got := d.want(exit.Failed, all...); !strings.Contains(got.stdout, string(readable[:8])) || !strings.Contains(got.stderr, "the list is incomplete") {
		t.Errorf("a readable one in another workspace: %s%s", got.stdout, got.stderr)
	}
}

// A damaged workspace does not become the default: requests that name none would fail.
func TestADamagedWorkspaceIsNoDefault(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	second := d.must("workspace", "create", "second")
	d.set(d.engines.Tables.Access, "workspace#"+second, "workspace", "created_at", kit.Text("x"))
	d.want(exit.Failed, "workspace", "default", second)
	d.must("credential", "list")
}

// A key whose row names no account can be deleted, and needs no revocation.
func TestAKeyOfNoAccount(t *testing.T) {
	t.Parallel()
	d := newApart(t)
	hash := d.key("nobody's", "")
	d.set(d.engines.Tables.Access, "key#"+hash, "key", "account", &types.AttributeValueMemberBOOL{})
	for _, command := range []string{"key disable " + hash, "key enable " + hash[:8], "key disable " + hash[:8] + " --account " + string(d.account)} {
		got := d.want(exit.Refused, strings.Fields(command)...)
		if !strings.Contains(got.stderr, "names no account: no request with it passes. `admin key delete`, without --account") {
			t.Errorf("admin %s: %s", command, got.stderr)
		}
	}
}

// A list shows an unreadable row as broken.
func TestADamagedRowIsListedAsBroken(t *testing.T) {
	t.Parallel()
	d := newApart(t)
	hash, job, second := d.key("spoilt", ""), d.must("job", "create"), d.must("workspace", "create", "spoilt")
	for _, c := range []struct {
		list, table string
		row         kit.Row
	}{
		{"key list --state broken", d.engines.Tables.Access, kit.Key("key#"+hash, "key")},
		{"workspace list --state broken", d.engines.Tables.Access, kit.Key("workspace#"+second, "workspace")},
		{"job list --status broken", d.engines.Tables.SyncJobs, kit.Key("job#" + job)},
	} {
		if before := d.must(strings.Fields("-o json " + c.list)...); before != "[]" {
			t.Errorf("admin %s: %s before the damage", c.list, before)
		}
		d.table(c.table).Set(t, c.row, "v", kit.Number("2"))
		if shown := d.must(strings.Fields("-o json " + c.list)...); strings.Count(shown, `"broken"`) != 1 {
			t.Errorf("admin %s: %s, want one broken row", c.list, shown)
		}
	}
	d.table(d.engines.Tables.SyncJobs).Set(t, kit.Key("job#"+job), "account", &types.AttributeValueMemberBOOL{})
	if shown := d.must("-o", "json", "job", "list"); !strings.Contains(shown, `{"account_id":null,"id":"`+job) {
		t.Errorf("a job without an account: %s", shown)
	}
}

// A response without a list is not the end of a table: a command that believed it would leave
// keys enabled, or call an account empty.
func TestAResponseWithoutAListIsAnError(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	second := d.must("workspace", "create", "second")
	d.must("workspace", "delete", second, "--yes")
	broken := d.broken()
	for _, operation := range []string{"Scan", "Query"} {
		broken.Inject(faults.Rule{Operation: operation, Fault: faults.Pretend(http.StatusOK, "{}")})
	}
	for _, command := range []string{"account list", "credential list", "workspace purge " + second + " --yes"} {
		d.want(exit.Failed, strings.Fields(command)...)
	}
}
