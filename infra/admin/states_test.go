package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// put brings an active key of a table into the state.
func (state keyState) put(t *testing.T, table kit.Rows, hash string) {
	t.Helper()
	yes := kit.Bool(true)
	set := func(attribute string, value types.AttributeValue) {
		table.Set(t, kit.Key("key#"+hash, "key"), attribute, value)
	}
	switch state {
	case active:
	case disabled:
		set("disabled", yes)
	case suspended:
		set("suspended", yes)
	case expired:
		set("expires_at", kit.Number("1"))
	case damaged:
		set("name", yes)
	default:
		t.Fatalf("no test has a key that is %s", state)
	}
}

// Every place that treats states differently is tried with every state: a list, a plan, a
// replacement, a suspension and its end, a deletion of the workspace, and a restore.
func TestEveryStateOfAKey(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	hash, old := d.key("k", d.workspace), d.key("old", "")
	live, before := d.table(d.engines.Tables.Access), d.table(kit.OtherAccess)
	rows := live.All(t)
	reset := func(now, then keyState) {
		live.Become(t, rows)
		before.Become(t, rows)
		now.put(t, live, hash)
		then.put(t, before, hash)
	}
	isDisabled := func() bool {
		mark, ok := live.Get(t, kit.Key("key#"+hash, "key"))["disabled"].(*types.AttributeValueMemberBOOL)
		return ok && mark.Value
	}
	verify := func() error {
		_, err := auth.NewVerifier(live.DB, live.Table).Verify(t.Context(), ids.KeyHash(hash))
		return err
	}
	for _, state := range keyStates {
		reset(state, active)
		if (verify() == nil) != (state == active) {
			t.Errorf("%s: let in: %v", state, verify() == nil)
		}
		for _, list := range []string{"find", "list"} {
			if shown := d.must("--json", "key", list, "--state", string(state)); !strings.Contains(shown, hash) || strings.Contains(shown, old) != (state == active) {
				t.Errorf("key %s --state %s: %s", list, state, shown)
			}
		}
		usable := acts.Refused
		if state == active {
			usable = acts.Done
		}
		d.want(usable, "credential", "plan", "--api-key-hash", hash, "--model", "m", "--provider", "openai")
		d.want(usable, "key", "replace", old, hash)

		d.must("account", "disable", string(d.account), "--yes")
		if verify() == nil {
			t.Errorf("%s: let in while its account is suspended", state)
		}
		d.must("account", "enable", string(d.account))
		if shown := d.must("key", "show", hash); state != suspended && !strings.Contains(shown, " "+string(state)+"\n") {
			t.Errorf("%s: a suspension and its end: %s", state, shown)
		}

		reset(state, active)
		kit.Must(t, auth.NewRegistry(live.DB, live.Table).DeleteWorkspace(t.Context(), d.account, d.workspace))
		if !isDisabled() {
			t.Errorf("%s: a deletion of its workspace passes over it", state)
		}
		for list, command := range map[string]string{
			"account#" + string(d.account): "account disable " + string(d.account), "workspace#" + string(d.workspace): "workspace delete " + string(d.workspace),
		} { // an act passes over a key that its list lacks, and a check names it
			reset(state, active)
			live.Delete(t, kit.Key(list, "key#"+hash))
			d.must(append(strings.Fields(command), "--yes")...)
			advised := func() bool {
				return strings.Contains(d.do("--json", "restore", "check").stdout, "check again: a key that was just made may be named. Then admin key disable "+hash)
			}
			if advised() != (state != disabled && state != damaged) || state == active && verify() != nil {
				t.Errorf("%s: %s passes over it; advised: %t", state, command, advised())
			}
			if d.must("key", "disable", hash); advised() || state != damaged && strings.Contains(d.must("account", "list"), "partly") {
				t.Errorf("%s: the check's advice changes nothing", state)
			}
		}

		repair := []string{"restore", "repair", "--before", before.Table, "--yes"}
		reset(state, disabled)
		d.do(repair...)
		if !isDisabled() {
			t.Errorf("%s: a restore passes over it: it was disabled", state)
		}
		reset(active, state)
		d.do(repair...)
		if (verify() == nil) != (state == active) {
			t.Errorf("%s before a restore: let in: %v", state, verify() == nil)
		}
	}
}
