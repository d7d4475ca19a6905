package main

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/byok"
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
		seal.NewSealer(kms.NewFromConfig(config), cmp.Or(d.sealing, d.engines.KeyARN)))
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

// left counts the credentials and files of a workspace, deleted or not.
func (d *fixture) left(w ids.Workspace) int {
	d.Helper()
	var credentials []credentialView
	var files []fileView
	d.json(&credentials, "credential", "list", "--workspace", string(w))
	d.json(&files, "file", "list", "--workspace", string(w))
	return len(credentials) + len(files)
}

// deletedAt is the time of the workspace's deletion, in whole seconds.
func (d *fixture) deletedAt() time.Time {
	d.Helper()
	var all []workspaceView
	d.json(&all, "workspace", "list")
	own := only(all, string(d.workspace), func(w workspaceView) string { return string(w.ID) })
	at, err := time.Parse(time.RFC3339, string(own[0].DeletedAt))
	kit.Must(d, err)
	return at
}

func TestPurgeSweepsAgainOnceRequestsHaveEnded(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.seal(d.workspace, "early")
	d.feed("content", "file", "upload", "-")
	d.want(exit.Refused, "workspace", "purge", string(d.workspace), "--yes")
	if d.left(d.workspace) != 2 {
		t.Fatal("a live workspace was purged")
	}
	d.must("workspace", "delete", string(d.workspace), "--yes")
	var waited time.Duration
	d.stopped(d.deletedAt(), func(wait time.Duration) error {
		if left := d.left(d.workspace); left != 0 {
			t.Errorf("%d things left after the first sweep", left)
		}
		waited += wait
		d.seal(d.workspace, "late") // a create that was under way
		return nil
	})
	got := d.typed("default\n", "workspace", "purge", string(d.workspace))
	if left := d.left(d.workspace); got.code != exit.Done || left != 0 || waited < settled || waited > settled+time.Second {
		t.Errorf("%d things left after %s", left, waited)
	}
	if !strings.Contains(got.stderr, "again in 20s") || !strings.Contains(got.stdout, "2 credentials and 1 version of") {
		t.Errorf("stderr %s%s", got.stderr, got.stdout)
	}
}

func TestAnInterruptedPurgeGoesOn(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.seal(d.workspace, "one")
	var bound createdKeyView
	d.json(&bound, "key", "create", "bound", "--workspace", string(d.workspace))
	d.must("workspace", "delete", string(d.workspace), "--yes")
	d.stopped(d.deletedAt(), func(time.Duration) error { return context.Canceled })
	got := d.want(exit.Uncertain, "workspace", "purge", string(d.workspace), "--yes")
	if audits := got.audits(); len(audits) != 2 || audits[0]["outcome"] != "begun" || audits[1]["outcome"] != "uncertain" || audits[1]["credentials_removed"] != 1.0 {
		t.Errorf("audit %v", audits)
	}
	if want := "removed so far: 1 credential and 0 versions of files. Repeat the command"; !strings.Contains(got.stderr, want) {
		t.Errorf("stderr %s", got.stderr)
	}
	d.seal(d.workspace, "late")
	d.set(d.engines.Tables.Access, "key#"+string(bound.Hash), "key", "disabled", &types.AttributeValueMemberBOOL{}) // as after an interrupted deletion
	d.stopped(d.deletedAt().Add(settled+time.Second), func(time.Duration) error {
		t.Error("it waits although all requests have ended")
		return nil
	})
	d.must("workspace", "purge", string(d.workspace), "--yes")
	if left := d.left(d.workspace); left != 0 || strings.Contains(d.must("key", "list"), "active") {
		t.Errorf("%d things left, or a key is enabled", left)
	}
}

// One command deletes a workspace, its credentials, its files and its keys. It may be
// interrupted anywhere and repeated.
func TestAWorkspaceIsErased(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	second := ids.Workspace(d.must("workspace", "create", "second"))
	kept := d.seal(d.workspace, "kept")
	d.must("key", "create", "kept")
	for _, name := range []string{"one", "two"} {
		d.must("key", "create", name, "--workspace", string(second))
		d.seal(second, name)
		d.feed("content", "file", "upload", "-", "--workspace", string(second))
	}
	d.stopped(time.Now(), func(time.Duration) error { return context.Canceled })
	got := d.want(exit.Uncertain, "workspace", "erase", string(second[:8]), "--yes")
	want := "removed so far: 2 credentials and 2 versions of files. Repeat the command: it goes on"
	if deleted := strings.Count(got.stderr, `"key.delete","outcome":"done"`); !strings.Contains(got.stderr, want) || deleted != 2 {
		t.Errorf("interrupted: %s", got.stderr)
	}
	d.stopped(time.Now(), func(time.Duration) error {
		d.seal(second, "late") // by a create that was under way
		return nil
	})
	got = d.want(exit.Done, "workspace", "erase", string(second), "--yes")
	if !strings.Contains(got.stdout, "1 credential and 0 versions of files, and 0 keys removed") {
		t.Errorf("stdout %s", got.stdout)
	}
	audits := got.audits()
	if len(audits) != 2 || audits[0]["outcome"] != "begun" || audits[1]["outcome"] != "done" || audits[1]["action"] != "workspace.erase" || audits[1]["credentials_removed"] != 1.0 {
		t.Errorf("audit %v", audits)
	}
	d.change = nil
	if left := d.left(second); left != 0 {
		t.Errorf("%d things left", left)
	}
	if keys := d.must("--json", "key", "list"); strings.Count(keys, `"hash"`) != 1 || !strings.Contains(keys, "kept") {
		t.Errorf("keys %s", keys)
	}
	if listed := d.must("credential", "list"); !strings.Contains(listed, string(kept[:8])) {
		t.Errorf("another workspace has %s", listed)
	}
	d.want(exit.NotFound, "workspace", "erase", string(ids.New[ids.Workspace]()), "--yes")
	d.want(exit.Usage, "workspace", "erase", string(d.workspace))
}

// An upload that waits for its content may end after its workspace was purged. It leaves
// nothing behind.
func TestAnUploadLeavesNothingInAPurgedWorkspace(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	content := after(func() {
		d.must("workspace", "delete", string(d.workspace), "--yes")
		d.stopped(d.deletedAt().Add(settled+time.Second), nil)
		d.must("workspace", "purge", string(d.workspace), "--yes")
		d.change = nil
	}, "content")
	got := d.run(t.Context(), content, "file", "upload", "-")
	if left := d.left(d.workspace); got.code != exit.Refused || left != 0 {
		t.Errorf("exit code %d and %d things left: %s", got.code, left, got.stderr)
	}
}

// A workspace that a router refuses is named, and one that cannot be counted. Only one with many
// credentials is counted, and never by a repair or another list.
func TestAWorkspaceThatRoutersRefuse(t *testing.T) {
	t.Parallel()
	d := newApart(t)
	d.must("restore", "check")
	sealed := kit.Key("workspace#"+string(d.workspace), "credential#"+string(d.seal(d.workspace, "n")))
	d.set(d.engines.Tables.Access, "workspace#"+string(d.workspace), "workspace", "next", &types.AttributeValueMemberM{Value: kit.Row{"openai": kit.Number("99")}})
	rows := d.table(d.engines.Tables.Credentials)
	row := rows.Get(t, sealed)
	for n := range byok.AlwaysReadable + 3 { // an engine may end a page after the row that passes 1 MB
		if n == byok.AlwaysReadable-1 {
			broken := d.broken()
			d.must("restore", "check")
			d.must("credential", "list")
			for _, call := range broken.Calls() {
				if call.Input["Select"] != nil {
					t.Errorf("%d credentials are counted", n+1)
				}
			}
			d.change = nil
		}
		id := string(ids.New[ids.Credential]())
		row["sk"], row["id"], row["sort_order"], row["name"] = kit.Text("credential#"+id), kit.Text(id), kit.Number(strconv.Itoa(n+2)), kit.Text(strings.Repeat("n", 72_000))
		rows.Put(t, row)
	}
	const refused, unknown = "more than the 1 MB", "it is not known whether routers refuse workspace "
	for command, c := range map[string]struct {
		code  int
		named string
	}{"credential list": {exit.Done, refused}, "restore check": {exit.Uncertain, refused}, "workspace list": {exit.Done, ""}, "restore repair --disable-all-keys --dry-run": {exit.Done, ""}} {
		for text, fault := range map[string]faults.Fault{refused: nil, unknown: faults.Throttle()} {
			broken := d.broken()
			counted := func(r *http.Request, apply faults.Apply) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				kit.Must(t, err)
				r.Body = io.NopCloser(bytes.NewReader(body))
				if bytes.Contains(body, []byte(`"Select":"COUNT"`)) && fault != nil {
					return fault(r, apply)
				}
				return apply()
			}
			broken.Inject(faults.Rule{Operation: "Query", Fault: counted})
			code := c.code
			if fault != nil {
				code = exit.Done
			}
			got := d.want(code, strings.Fields(command)...)
			if shown := got.stdout + got.stderr; strings.Contains(shown, text) != (c.named != "") {
				t.Errorf("admin %s: %s", command, shown)
			}
			d.change = nil
		}
	}
}
