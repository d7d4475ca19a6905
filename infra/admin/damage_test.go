package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// A leaked key is found and disabled even if all other rows are damaged.
func TestNoDamageStopsARevocation(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
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
		if got := d.feed(key, strings.Fields(command)...); got.code != acts.Done || !strings.Contains(got.stdout, text) {
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
	d.want(acts.NotFound, strings.Fields("key disable "+hash+" --account "+string(other.ID))...)
	d.want(acts.NotFound, strings.Fields("credential disable "+credential+workspace+" --account "+string(other.ID))...)

	// A restored table may have a key without its list entry.
	access.Delete(t, kit.Key("account#"+string(d.account), "key#"+hash))
	shows("disabled", "key disable "+hash+account)
	shows("active", "key enable "+hash[:8])

	// In a search of one workspace, a damaged credential hides the others. With the whole
	// id each can still be disabled.
	spoilt := string(d.seal(d.workspace, "spoilt"))
	d.table(d.engines.Tables.Credentials).Set(t, kit.Key("workspace#"+string(d.workspace), "credential#"+spoilt), "name", kit.Bool(false))
	shows(credential[:8], "credential find leaked")
	for _, id := range []string{credential, spoilt} {
		shows("disabled", "credential disable "+id+workspace)
		shows("disabled", "credential disable "+id+workspace+account)
		got := d.want(acts.Failed, strings.Fields("credential disable "+id+account)...)
		if !strings.Contains(got.stderr, "a damaged credential, which hides the others") || !strings.Contains(got.stderr, "give --workspace and the whole id") {
			t.Errorf("credential %s: %s", id, got.stderr)
		}
	}
	d.want(acts.Uncertain, "key", "delete", hash, "--yes") // the damaged one may list it
	shows("disabled", "key find -")
}

// Beside a damaged credential, no command shows one that it has not read.
func TestADamagedCredentialIsNotShown(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	spoilt := string(d.seal(d.workspace, "spoilt"))
	d.table(d.engines.Tables.Credentials).Set(t, kit.Key("workspace#"+string(d.workspace), "credential#"+spoilt), "name", kit.Bool(false))
	for _, in := range []string{"", " --workspace " + string(d.workspace), " --account " + string(d.account)} {
		if got := d.want(acts.Failed, strings.Fields("credential show "+spoilt+in)...); got.stdout != "" || !strings.Contains(got.stderr, "admin restore check") {
			t.Errorf("%s: %s%s", in, got.stdout, got.stderr)
		}
	}
	d.want(acts.NotFound, "credential", "disable", string(ids.New[ids.Credential]()), "--workspace", string(d.workspace))
}

// A damaged workspace does not become the default: requests that name none would fail.
func TestADamagedWorkspaceIsNoDefault(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	second := d.must("workspace", "create", "second")
	d.set("workspace#"+second, "created_at", kit.Text("x"))
	d.want(acts.Failed, "workspace", "default", second)
	d.must("credential", "list")
}

// A key whose row names no account can be disabled and deleted, also by somebody who names one.
// No other account's credentials are read for it.
func TestAKeyOfNoAccount(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	for _, account := range []types.AttributeValue{kit.Bool(false), kit.Text(""), kit.Number("1")} {
		hash := d.key("nobody's", "")
		d.set("key#"+hash, "account", account)
		d.must("key", "disable", hash[:8], "--account", string(d.account))
		d.want(acts.Failed, "key", "enable", hash)
		if row := d.table(d.engines.Tables.Access).Get(t, kit.Key("key#"+hash, "key")); row["disabled"].(*types.AttributeValueMemberBOOL).Value != true {
			t.Errorf("account %v: it is not disabled", account)
		}
		transport := d.broken()
		d.must("key", "delete", hash, "--account", string(d.account), "--yes")
		d.change = nil
		if slices.ContainsFunc(transport.Calls(), func(c faults.Call) bool { return c.Operation == "Scan" }) {
			t.Errorf("account %v: the deletion reads the credentials of all accounts", account)
		}
		d.want(acts.NotFound, "key", "show", hash)
	}
}

// A search by name names the damaged rows.
func TestADamagedKeyIsCounted(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.key("alice", "")
	d.set("key#"+d.key("alice", ""), "name", kit.Bool(false))
	if got := d.want(acts.Done, "key", "find", "alice"); strings.Count(got.stdout, "alice") != 1 || !strings.Contains(got.stderr, "passed over 1 damaged key: ") {
		t.Errorf("%s%s", got.stdout, got.stderr)
	}
}

// A row's key can be any text. No sentence writes it to the terminal as it is.
func TestARowsKeyMovesNoCursor(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	hash := "\x1b[2J\nadmin: done"
	row := kit.Key("key#"+hash, "key")
	row["account"], row["v"] = kit.Text(string(d.account)), kit.Number("0")
	d.table(d.engines.Tables.Access).Put(t, row)
	got := d.do("restore", "repair", "--disable-all-keys", "--yes")
	if shown := got.stdout + got.stderr; strings.ContainsRune(shown, '\x1b') || strings.Contains(shown, "\nadmin: done") {
		t.Errorf("%q", shown)
	}
	if got := output.OneLine("a\x1b[2J\nb\u202e\tö"); got != `a\x1b[2J; b\u202e\tö` {
		t.Error(got)
	}
}

// A list shows a damaged job, also one of no account.
func TestADamagedJobIsListed(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	job := d.must("job", "create")
	d.table(d.engines.Tables.Jobs).Set(t, kit.Key("job#"+job), "account", kit.Bool(false))
	if shown := d.must("--json", "job", "list", "--status", "damaged"); strings.Count(shown, `"damaged"`) != 1 || !strings.Contains(shown, `{"account_id":null,"id":"`+job) {
		t.Error(shown)
	}
}
