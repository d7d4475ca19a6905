package main

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

const providerKey = "sk-marker-7Hq2-abcdefgh"

// seal stores a credential, like the API.
func (d *fixture) seal(w ids.Workspace, name string, changes ...func(*byok.Draft)) ids.Credential {
	d.Helper()
	config, tables := d.engines.Config, d.engines.Tables
	store := byok.NewStore(dynamodb.NewFromConfig(config), tables.Credentials, tables.Control,
		seal.NewSealer(kms.NewFromConfig(config), cmp.Or(d.sealing, d.engines.Tables.SealingKey)))
	draft, err := store.Seal(d.Context(), d.account, w, byok.New{
		Settings: byok.Settings{Provider: "openai", Name: name},
		Key:      secret.New([]byte(providerKey)),
	})
	kit.Must(d, err)
	for _, change := range changes {
		change(&draft)
	}
	kit.Must(d, store.Create(d.Context(), draft))
	return draft.ID
}

// key makes an API key, bound to the workspace unless that is empty, and returns its hash.
func (d *fixture) key(name string, w ids.Workspace) string {
	d.Helper()
	registry := auth.NewRegistry(dynamodb.NewFromConfig(d.engines.Config), d.engines.Tables.Access)
	_, made, err := registry.CreateKey(d.Context(), auth.NewKey{Account: d.account, Workspace: w, Kind: auth.Standard, Name: name})
	kit.Must(d, err)
	return string(made.Hash)
}

// left is how many credentials and versions of files a workspace has.
func (d *fixture) left(w ids.Workspace) int {
	d.Helper()
	var credentials []credentialView
	d.json(&credentials, "credential", "list", "--workspace", string(w))
	return len(credentials) + d.bucketOf().Look(d, files.Key(w, "")).Siblings
}

// deletedAt is the time of the workspace's deletion, in whole seconds.
func (d *fixture) deletedAt() time.Time {
	d.Helper()
	var own workspaceView
	d.json(&own, "workspace", "show", string(d.workspace))
	at, err := time.Parse(time.RFC3339, string(own.DeletedAt))
	kit.Must(d, err)
	return at
}

// TestCases has the second sweep and the wait for it.
func TestAPurgeSaysWhatItDoes(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.fill(d.workspace)
	bound := d.key("bound", d.workspace)
	d.want(acts.Refused, "workspace", "purge", string(d.workspace), "--yes")
	d.must("workspace", "delete", string(d.workspace), "--yes")
	d.set("key#"+bound, "disabled", kit.Bool(false)) // as after an interrupted deletion
	d.stopped(d.deletedAt(), func(time.Duration) error { return context.Canceled })
	got := d.want(acts.Uncertain, "workspace", "purge", string(d.workspace), "--yes")
	if audits := got.audits(); len(audits) != 2 || audits[1]["outcome"] != "uncertain" || audits[1]["credentials_removed"] != 1.0 {
		t.Errorf("audit %v", audits)
	}
	if !strings.Contains(got.stderr, "again in 20s") || !strings.Contains(got.stderr, "removed so far: 1 credential, 1 version of files, 0 uploads in parts and 0 keys. Repeat the command") || strings.Contains(d.must("key", "list"), "active") {
		t.Errorf("stderr %s", got.stderr)
	}
	d.stopped(d.deletedAt().Add(acts.RequestsEnd+time.Second), func(time.Duration) error {
		t.Error("it waits although all requests have ended")
		return nil
	})
	if got := d.want(acts.Done, "workspace", "purge", string(d.workspace), "--yes"); !strings.Contains(got.stdout, "0 credentials, 0 versions of files, 1 upload") {
		t.Errorf("%s%s", got.stdout, got.stderr)
	}
}

// A time of deletion in milliseconds holds no purge up. A check names it.
func TestADeletionInTheFuture(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	at := time.Unix(time.Now().UnixMilli(), 0)
	d.set("workspace#"+string(d.workspace), "deleted_at", kit.Number(strconv.FormatInt(at.Unix(), 10)))
	waited := time.Duration(0)
	d.stopped(time.Now(), func(wait time.Duration) error {
		waited += wait
		return nil
	})
	d.must("workspace", "purge", string(d.workspace), "--yes")
	if waited > acts.RequestsEnd {
		t.Errorf("it waited %s", waited)
	}
	if checked := d.want(acts.Uncertain, "restore", "check", "--json"); !strings.Contains(checked.stdout, "deleted in the future: at "+at.UTC().Format(time.RFC3339)) {
		t.Error(checked.stdout)
	}
}

// A proxy may answer an upload with a page of its own.
func TestAnUploadThatAProxyAnswers(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.broken().Inject(faults.Rule{Operation: "PutObject", Fault: faults.Otherwise(http.StatusOK, "<html>Sign in</html>")})
	got := d.feed("content", "file", "upload", "-")
	if got.code != acts.Uncertain || got.stdout != "" || got.audits()[0]["outcome"] != "uncertain" || !strings.Contains(got.stderr, "not S3's") {
		t.Errorf("exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
}

// wantRights checks that the page names the right to each of these calls.
func wantRights(t *testing.T, calls []faults.Call) {
	t.Helper()
	page, err := os.ReadFile("../operations/daily.md")
	kit.Must(t, err)
	actions := map[string]string{
		"ListMultipartUploads": "ListBucketMultipartUploads", "ListObjectVersions": "ListBucketVersions", "DeleteObjects": "DeleteObjectVersion", "TransactWriteItems": "ConditionCheckItem",
	}
	for _, call := range calls {
		if action := cmp.Or(actions[call.Operation], call.Operation); !bytes.Contains(page, []byte("`"+action+"`")) {
			t.Errorf("daily.md has no right %s, for %s %s", action, call.Operation, call.URL)
		}
	}
}

// fill stores a credential, a file, an upload in parts and two bound keys in a workspace.
func (d *fixture) fill(w ids.Workspace) {
	d.Helper()
	d.seal(w, "one")
	d.feed("content", "file", "upload", "-", "--workspace", string(w))
	_, err := d.bucketOf().CreateMultipartUpload(d.Context(), &s3.CreateMultipartUploadInput{Bucket: &d.bucket, Key: aws.String(files.Key(w, "file_parts"))})
	kit.Must(d, err)
	for _, name := range []string{"first", "second"} {
		d.key(name, w)
	}
}

func (d *fixture) bucketOf() kit.Bucket {
	return kit.Bucket{Client: awsclients.S3(d.engines.Config), Name: d.bucket}
}

// A missing right to abort uploads stops nothing else, and an upload that is completed during
// the purge leaves nothing.
func TestAPurgeAndUploadsInParts(t *testing.T) {
	t.Parallel()
	d := newOnEngines(t)
	d.fill(d.workspace)
	complete := d.bucketOf().Begin(t, files.Key(d.workspace, "file_completed"))
	d.must("workspace", "delete", string(d.workspace), "--yes")
	transport := faults.Wrap(d.engines.Config.HTTPClient)
	transport.Inject(faults.Rule{Fault: func(r *http.Request, apply faults.Apply) (*http.Response, error) {
		if r.URL.Query().Has("uploads") {
			kit.Must(t, complete())
			return faults.Answer(http.StatusForbidden, "AccessDenied", "no")(r, apply)
		}
		return apply()
	}})
	d.change = func(a *app) { a.http, a.now = transport, func() time.Time { return time.Now().Add(time.Hour) } }
	if got := d.want(acts.Uncertain, "workspace", "purge", string(d.workspace), "--yes"); !strings.Contains(got.stderr, "ListMultipartUploads with AccessDenied") {
		t.Errorf("stderr %s", got.stderr)
	}
	d.change = nil
	if left := d.left(d.workspace); left > 0 {
		t.Errorf("%d things left", left)
	}
}

// A deletion disables damaged keys, too. An erasure deletes the sound ones. Both name the keys that
// they leave, until somebody deletes those.
func TestADeletionAndAnErasureOfDamagedKeys(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	access := d.table(d.engines.Tables.Access)
	d.stopped(time.Now().Add(time.Hour), nil)
	for _, c := range []struct {
		attribute   string
		value       types.AttributeValue
		own, erased bool // a deletion disables it; an erasure deletes it
	}{
		{"v", kit.Number("2"), true, false},
		{"name", kit.Bool(false), true, false},
		{"disabled", kit.Text("no"), true, true}, // disabling it mends the row
		{"workspace", &types.AttributeValueMemberNULL{Value: true}, true, false},
		{"account", kit.Text(string(ids.New[ids.Account]())), false, false},
		{"account", kit.Bool(false), true, false},
	} {
		second := ids.Workspace(d.must("workspace", "create", "second"))
		d.fill(second)
		hash := d.key("damaged", second)
		row := kit.Key("key#"+hash, "key")
		d.set("key#"+hash, c.attribute, c.value)
		run := func(command string, left bool) {
			t.Helper()
			got := d.do("workspace", command, string(second), "--yes")
			if (got.code == acts.Uncertain) != left || strings.Contains(got.stderr, "key "+hash+" is left") != left || strings.Contains(got.stderr, "epeat") {
				t.Errorf("%s %v: %s", c.attribute, c.value, got.stderr)
			}
		}
		run("delete", !c.own)
		if mark, _ := access.Get(t, row)["disabled"].(*types.AttributeValueMemberBOOL); mark.Value != c.own {
			t.Errorf("%s %v: disabled %t", c.attribute, c.value, mark.Value)
		}
		d.set("key#"+hash, c.attribute, c.value)
		run("erase", !c.erased)
		if access.Get(t, row) == nil != c.erased || strings.Count(d.must("--json", "key", "list"), `"first"`) > 0 {
			t.Errorf("%s %v: want it deleted: %t", c.attribute, c.value, c.erased)
		}
		if !c.erased {
			d.must("key", "delete", hash, "--yes")
			run("erase", false)
		}
	}
}

// An upload that waits for its content may end after its workspace was purged. It leaves
// nothing behind.
func TestAnUploadLeavesNothingInAPurgedWorkspace(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	content := after(func() {
		d.must("workspace", "delete", string(d.workspace), "--yes")
		d.stopped(d.deletedAt().Add(acts.RequestsEnd+time.Second), nil)
		d.must("workspace", "purge", string(d.workspace), "--yes")
		d.change = nil
	}, "content")
	got := d.run(t.Context(), content, "file", "upload", "-")
	if left := d.left(d.workspace); got.code != acts.Refused || left != 0 {
		t.Errorf("exit code %d and %d things left: %s", got.code, left, got.stderr)
	}
}

// A workspace that a router refuses is named, and so is one that could not be counted. Only one
// with many credentials is counted.
func TestAWorkspaceThatRoutersRefuse(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	rows := d.table(d.engines.Tables.Credentials)
	row := rows.Get(t, kit.Key("workspace#"+string(d.workspace), "credential#"+string(d.seal(d.workspace, "n"))))
	row["name"] = kit.Text(strings.Repeat("n", 72_000))
	d.set("workspace#"+string(d.workspace), "next", &types.AttributeValueMemberM{Value: kit.Row{"openai": kit.Number("99")}})
	for stored := 2; stored <= byok.AlwaysReadable+2; stored++ {
		id := string(ids.New[ids.Credential]())
		row["sk"], row["id"], row["sort_order"] = kit.Text("credential#"+id), kit.Text(id), kit.Number(strconv.Itoa(stored))
		rows.Put(t, row)
		if stored == byok.AlwaysReadable {
			transport := d.broken()
			d.must("restore", "check")
			if slices.ContainsFunc(transport.Calls(), func(c faults.Call) bool { return c.Input["Select"] == "COUNT" }) {
				t.Errorf("%d credentials are counted", stored)
			}
		}
	}
	if got := d.want(acts.Uncertain, "restore", "check"); !strings.Contains(got.stdout, "more than the 1 MB") {
		t.Errorf("%s%s", got.stdout, got.stderr)
	}
	if got := d.want(acts.Done, "credential", "list"); !strings.Contains(got.stderr, "more than the 1 MB") {
		t.Error(got.stderr)
	}
	d.broken().Inject(faults.Rule{Operation: "Query", Fault: faults.Answer(http.StatusForbidden, "AccessDeniedException", "no")})
	if got := d.want(acts.Done, "restore", "check"); !strings.Contains(got.stderr, "it is not known whether routers refuse workspace "+string(d.workspace)) {
		t.Errorf("%s%s", got.stdout, got.stderr)
	}
}
