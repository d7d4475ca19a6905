package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// newMany returns an account with three keys, and with credentials that list the first key.
func newMany(t *testing.T) (d *fixture, hashes []string) {
	t.Helper()
	d = newFixture(t)
	for i := range 3 {
		hashes = append(hashes, d.key(fmt.Sprint("key ", i), ""))
	}
	first, second := ids.KeyHash(hashes[0]), ids.KeyHash(hashes[1])
	for i, list := range [][]ids.KeyHash{{first, second}, {first, "x"}, {first}, {"x"}, nil} {
		d.seal(d.workspace, fmt.Sprint("credential ", i), func(draft *byok.Draft) { draft.AllowedAPIKeyHashes, draft.SortOrder = list, int64(i) })
	}
	return d, hashes
}

// states are the state of the first account and those of its keys, by their names.
func (d *fixture) states() string {
	d.Helper()
	var keys []keyView
	var accounts []accountView
	d.json(&accounts, "account", "list")
	d.json(&keys, "key", "list")
	var states []string
	for _, k := range keys {
		states = append(states, fmt.Sprintf(", %s %s", k.Name, k.State))
	}
	slices.Sort(states)
	return accounts[0].State + strings.Join(states, "")
}

// contents returns the items of the access and the credentials table in a fixed order, without
// the times at which workspaces were deleted, and how much the bucket has.
func (d *fixture) contents() (contents []string) {
	d.Helper()
	for _, table := range []string{d.engines.Tables.Access, d.engines.Tables.Credentials} {
		var rows []map[string]any
		kit.Must(d, attributevalue.UnmarshalListOfMaps(d.table(table).All(d), &rows))
		for _, row := range rows {
			if _, deleted := row["deleted_at"]; deleted {
				row["deleted_at"] = "some time"
			}
			contents = append(contents, fmt.Sprint(row))
		}
	}
	slices.Sort(contents)
	bucket := d.bucketOf()
	stored, err := bucket.ListObjectVersions(d.Context(), &s3.ListObjectVersionsInput{Bucket: &bucket.Name})
	kit.Must(d, err)
	uploads, err := bucket.ListMultipartUploads(d.Context(), &s3.ListMultipartUploadsInput{Bucket: &bucket.Name})
	kit.Must(d, err)
	return append(contents, fmt.Sprintf("%d versions, %d delete markers, %d uploads", len(stored.Versions), len(stored.DeleteMarkers), len(uploads.Uploads)))
}

// A change of many keys tries each, although one fails.
func TestAFailureStopsNoOtherKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command   string
		operation string
		call      int
		want      string
	}{
		{"account disable ACCOUNT", "UpdateItem", 1, "2 keys changed, others not. Repeat the command"}, // of the account's row
		{"account disable ACCOUNT", "UpdateItem", 2, "1 key changed, others not. Repeat the command"},
		{"workspace delete WORKSPACE", "UpdateItem", 1, "some of its keys enabled. Repeat the command"},
		{"workspace erase WORKSPACE", "DeleteObjects", 1, "1 credential, 0 versions of files, 0 uploads in parts and 2 keys. Repeat the command"},
		{"workspace erase WORKSPACE", "TransactWriteItems", 2, "1 upload in parts and 1 key. Repeat the command"},
	} {
		d := newFixture(t)
		d.fill(d.workspace)
		transport := faults.Wrap(d.engines.Config.HTTPClient)
		d.change = func(a *app) { a.http, a.now = transport, func() time.Time { return time.Now().Add(time.Hour) } }
		transport.Inject(faults.Rule{Operation: c.operation, Call: c.call, Fault: faults.Answer(http.StatusForbidden, "AccessDeniedException", "no")})
		args := strings.Fields(strings.NewReplacer("ACCOUNT", string(d.account), "WORKSPACE", string(d.workspace)).Replace(c.command + " --yes"))
		if got := d.want(acts.Uncertain, args...); !strings.Contains(got.stderr, c.want) {
			t.Errorf("%s: %s", c.command, got.stderr)
		}
		if keys := d.must("key", "list"); strings.Count(keys, "active") > 1 {
			t.Errorf("%s: %s", c.command, keys)
		}
		transport.Heal()
		d.must(args...)
		wantRights(t, transport.Calls())
	}
}

// An act that is interrupted between two keys does not end as if all were done.
func TestAnInterruptedActIsNotDone(t *testing.T) {
	t.Parallel()
	d, _ := newMany(t)
	ctx, interrupt := context.WithCancel(t.Context())
	for range 2 {
		d.key("bound", d.workspace)
	}
	d.broken().Inject(faults.Rule{Operation: "UpdateItem", Call: 1, Fault: faults.Then(interrupt)})
	if got := d.run(ctx, strings.NewReader(""), "workspace", "delete", string(d.workspace), "--yes"); got.code != acts.Uncertain {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
}

// Neither a damaged account nor a damaged key keeps another key of a suspended account in use. A key
// of another account stays in use, although the list names it.
func TestDamageStopsNoSuspension(t *testing.T) {
	t.Parallel()
	d, hashes := newMany(t)
	var other accountView
	d.json(&other, "account", "create", "Other")
	theirs := auth.HashKey(d.must("key", "create", "theirs", "--account", string(other.ID)))
	access := d.table(d.engines.Tables.Access)
	access.Put(t, kit.Key("account#"+string(d.account), "key#"+string(theirs)))
	row := "key#" + hashes[0]
	putRight := func() {
		d.set(row, "name", kit.Text("key 0"))
		d.set(row, "account", kit.Text(string(d.account)))
	}
	d.set("account#"+string(d.account), "v", kit.Number("2"))
	for _, c := range []struct {
		attribute string
		during    bool // somebody puts the row right between two writes
	}{{"name", false}, {"account", false}, {"account", true}} {
		d.set(row, c.attribute, kit.Bool(false))
		if c.during {
			d.broken().Inject(faults.Rule{Operation: "UpdateItem", Call: 2, Fault: func(_ *http.Request, apply faults.Apply) (*http.Response, error) {
				putRight()
				return apply()
			}})
		}
		if got := d.want(acts.Done, "account", "disable", string(d.account), "--yes"); !strings.Contains(got.stderr, "the account's row is damaged") {
			t.Errorf("a damaged account: %s", got.stderr)
		}
		d.change = nil
		putRight()
		if got, want := d.states(), "damaged, key 0 suspended, key 1 suspended, key 2 suspended"; got != want {
			t.Errorf("%+v: put right: %s, want %s", c, got, want)
		}
		d.must("account", "enable", string(d.account))
	}
	access.Delete(t, kit.Key("account#"+string(d.account), "account"))
	d.want(acts.Done, "account", "disable", string(d.account), "--yes")
	if got := d.want(acts.Done, "account", "enable", string(d.account)); !strings.Contains(got.stdout, "3 keys changed") {
		t.Errorf("without the account's row: %s", got.stdout)
	}
	if _, err := auth.NewVerifier(access.DB, access.Table).Verify(t.Context(), theirs); err != nil {
		t.Errorf("another account's key: %v", err)
	}
}

// A list and a check show what an interrupted command left.
func TestAnAccountIsPartlySuspended(t *testing.T) {
	t.Parallel()
	d, hashes := newMany(t)
	for row, problem := range map[string]string{
		"account#" + string(d.account): "not suspended, but its account is", "key#" + hashes[0]: "suspended, but its account is not",
	} {
		d.set(row, "suspended", kit.Bool(true))
		checked := d.want(acts.Uncertain, "restore", "check", "--json").stdout
		if got := d.states(); !strings.HasPrefix(got, "partly suspended") || !strings.Contains(checked, `"`+problem) || !strings.Contains(checked, "admin account disable") {
			t.Errorf("%s: %s; %s", row, got, checked)
		}
		d.must("account", "enable", string(d.account))
	}
}

// A full list is named and passed over. One that somebody else changes meanwhile is read again.
func TestAFullListIsPassedOver(t *testing.T) {
	t.Parallel()
	d, hashes := newMany(t)
	full := slices.Repeat([]ids.KeyHash{ids.KeyHash(hashes[0])}, 100)
	d.seal(d.workspace, "full", func(draft *byok.Draft) { draft.AllowedAPIKeyHashes, draft.SortOrder = full, 9 })
	d.broken().Inject(faults.Rule{Operation: "UpdateItem", Call: 1, Fault: func(r *http.Request, apply faults.Apply) (*http.Response, error) {
		d.change = nil
		d.must("key", "delete", hashes[1], "--yes") // it is in the first list
		return apply()
	}})
	got := d.want(acts.Uncertain, "key", "replace", hashes[0], hashes[2])
	if !strings.Contains(got.stderr, `"full" is full`) || !strings.Contains(got.stderr, "3 allow-lists changed") {
		t.Error(got.stderr)
	}
}
