package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// many is an account with three keys, and with credentials that list the first key.
type many struct {
	*fixture
	hashes []string
}

func newMany(t *testing.T) many {
	t.Helper()
	d := many{fixture: newApart(t)}
	for i := range 3 {
		d.hashes = append(d.hashes, string(auth.HashKey(d.must("key", "create", fmt.Sprint("key ", i)))))
	}
	first, second := ids.KeyHash(d.hashes[0]), ids.KeyHash(d.hashes[1])
	for i, list := range [][]ids.KeyHash{{first, second}, {first, "x"}, {first}, {"x"}, nil} {
		d.seal(d.workspace, fmt.Sprint("credential ", i), func(draft *byok.Draft) { draft.AllowedAPIKeyHashes, draft.SortOrder = list, int64(i) })
	}
	return d
}

// states are the states of the account and its keys.
func (d many) states() string {
	d.Helper()
	var keys []keyView
	var accounts []accountView
	d.json(&accounts, "account", "list")
	d.json(&keys, "key", "list")
	var states []string
	for _, k := range keys {
		states = append(states, fmt.Sprintf(" %d:%s", slices.Index(d.hashes, string(k.Hash)), k.State))
	}
	slices.Sort(states)
	return accounts[0].State + strings.Join(states, "")
}

// shown are the states, and the allow-lists with the numbers of the keys in them.
func (d many) shown() string {
	d.Helper()
	shown := d.states()
	var credentials []credentialView
	d.json(&credentials, "credential", "list")
	for _, c := range credentials {
		lists := fmt.Sprint(c.AllowedAPIKeyHashes)
		for i, hash := range d.hashes {
			lists = strings.ReplaceAll(lists, hash, fmt.Sprint(i))
		}
		shown += " " + lists
	}
	return shown
}

// A change of many things that was interrupted after any of its writes, or in which one write
// failed, goes on if it is repeated. A list never becomes empty.
func TestAChangeOfManyThingsGoesOn(t *testing.T) {
	t.Parallel()
	const enabled, lists = "active 0:active 1:active 2:active", " [0 1] [0 x] [0] [x] []"
	for command, want := range map[string]string{
		"account disable ACCOUNT --yes": "suspended 0:suspended 1:suspended 2:suspended" + lists,
		"account enable ACCOUNT":        enabled + lists,
		"key replace 0 2":               enabled + " [0 1 2] [0 x 2] [0 2] [x] []",
		"key delete 0 --yes":            "active 1:active 2:active [1] [x] [0] [x] []",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			d := newMany(t)
			args := strings.Fields(strings.NewReplacer("ACCOUNT", string(d.account), " 0", " "+d.hashes[0], " 2", " "+d.hashes[2]).Replace(command))
			if args[1] == "enable" {
				d.must("account", "disable", string(d.account), "--yes")
			}
			access, credentials := d.table(d.engines.Tables.Access), d.table(d.engines.Tables.Credentials)
			before, stored := access.All(t), credentials.All(t)
			for writes := 1; ; writes++ {
				access.Become(t, before)
				credentials.Become(t, stored)
				// One write fails.
				broken := d.broken()
				broken.Inject(faults.Rule{Operation: "UpdateItem", Call: writes, Fault: faults.Answer(http.StatusBadRequest, "ValidationException", "no")})
				got := d.do(args...)
				wrote := slices.ContainsFunc(broken.Calls(), func(c faults.Call) bool { return c.Failed })
				if d.change = nil; wrote && (got.code == exit.Done || got.code == exit.Uncertain && !strings.Contains(got.stderr, "repeat the command")) {
					t.Errorf("write %d fails: exit code %d: %s", writes, got.code, got.stderr)
				}
				if args[1] == "disable" && wrote && strings.Count(d.states(), "suspended") < 3 {
					t.Errorf("write %d fails: others are not suspended: %s", writes, d.states())
				}
				// After another the process is interrupted.
				ctx, interrupt := context.WithCancel(t.Context())
				seen := 0
				d.broken().Inject(faults.Rule{Operation: "UpdateItem", Fault: faults.Then(func() {
					if seen++; seen == writes {
						interrupt()
					}
				})})
				d.run(ctx, strings.NewReader(""), args...)
				interrupt()
				d.change = nil
				if got := d.do(args...); got.code != exit.Done && got.code != exit.NotFound {
					t.Errorf("repeated after write %d: exit code %d: %s", writes, got.code, got.stderr)
				}
				if got := d.shown(); got != want {
					t.Errorf("after write %d: %s, want %s", writes, got, want)
				}
				if !wrote {
					if writes < 3 {
						t.Errorf("%d writes", writes)
					}
					return
				}
			}
		})
	}
}

// Neither a damaged account nor a damaged key keeps another key of a suspended account in use.
func TestDamageStopsNoSuspension(t *testing.T) {
	t.Parallel()
	d := newMany(t)
	access := d.engines.Tables.Access
	d.set(access, "account#"+string(d.account), "account", "v", kit.Number("2"))
	row, name := kit.Key("key#"+d.hashes[0], "key"), kit.Text("key 0")
	d.table(access).Set(t, row, "name", &types.AttributeValueMemberBOOL{})
	d.must("account", "disable", string(d.account), "--yes")
	if got, want := d.states(), "broken 0:broken 1:suspended 2:suspended"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	d.table(access).Set(t, row, "name", name)
	if got, want := d.states(), "broken 0:suspended 1:suspended 2:suspended"; got != want {
		t.Errorf("put right: %s, want %s", got, want)
	}
	d.table(access).Set(t, row, "account", &types.AttributeValueMemberBOOL{})
	if got := d.want(exit.Uncertain, "account", "disable", string(d.account), "--yes"); strings.Contains(got.stderr, "epeat") || !strings.Contains(got.stderr, "key "+d.hashes[0]+" is not marked") {
		t.Errorf("a key without an account: %s", got.stderr)
	}
	d.table(access).Delete(t, kit.Key("account#"+string(d.account), "account"))
	if got := d.want(exit.Done, "account", "enable", string(d.account)); !strings.Contains(got.stdout, "2 keys changed") {
		t.Errorf("without the account's row: %s", got.stdout)
	}
}

// A list and a check show what an interrupted command left.
func TestAnAccountIsPartlySuspended(t *testing.T) {
	t.Parallel()
	d := newMany(t)
	access := d.engines.Tables.Access
	for row, problem := range map[[2]string]string{
		{"account#" + string(d.account), "account"}: "not suspended, but its account is", {"key#" + d.hashes[0], "key"}: "suspended, but its account is not",
	} {
		d.set(access, row[0], row[1], "suspended", &types.AttributeValueMemberBOOL{Value: true})
		checked := d.want(exit.Uncertain, "restore", "check", "-o", "json").stdout
		if got := d.states(); !strings.HasPrefix(got, "partly suspended") || !strings.Contains(checked, `"`+problem) || !strings.Contains(checked, "admin account disable") {
			t.Errorf("%s: %s; %s", row, got, checked)
		}
		d.must("account", "disable", string(d.account), "--yes")
		if got := d.states(); got != "suspended 0:suspended 1:suspended 2:suspended" {
			t.Errorf("repeated: %s", got)
		}
		d.must("account", "enable", string(d.account))
	}
}

// A full list is named and passed over.
func TestAFullListIsPassedOver(t *testing.T) {
	t.Parallel()
	d := newMany(t)
	full := slices.Repeat([]ids.KeyHash{ids.KeyHash(d.hashes[0])}, 100)
	d.seal(d.workspace, "full", func(draft *byok.Draft) { draft.AllowedAPIKeyHashes, draft.SortOrder = full, 9 })
	got := d.want(exit.Uncertain, "key", "replace", d.hashes[0], d.hashes[2])
	if !strings.Contains(got.stderr, `"full" is full`) || !strings.Contains(got.stderr, "3 allow-lists changed") {
		t.Error(got.stderr)
	}
}
