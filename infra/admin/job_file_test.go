package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/output"
)

func TestAJobGoesThroughItsStates(t *testing.T) {
	d := newFixture(t)
	id := d.must("job", "create")
	d.want(exit.Refused, "job", "succeed", id, "--synced", "1", "--deleted", "0")
	d.must("job", "start", id)
	again := d.want(exit.Refused, "job", "start", id)
	if !strings.Contains(again.stderr, "it is running") {
		t.Errorf("stderr %s", again.stderr)
	}
	d.want(exit.Usage, "job", "succeed", id, "--synced=-1", "--deleted", "0")
	d.must("job", "succeed", id, "--synced", "12", "--deleted", "0")
	d.want(exit.Refused, "job", "fail", id, "--message", "too late")
	var got jobView
	d.json(&got, "job", "show", id)
	if got.Status != "succeeded" || *got.SyncedGroups != 12 || *got.DeletedGroups != 0 || got.ErrorMessage != nil || got.FinishedAt == "" {
		t.Errorf("job %+v", got)
	}
	if shown := d.must("job", "show", id); !strings.Contains(shown, "synced groups   12\n") {
		t.Errorf("shown:\n%s", shown)
	}
}

func TestAccountsAndJobsAreListed(t *testing.T) {
	d := newFixture(t)
	other := newFixture(t)
	t.Setenv("SIGNALBOX_ACCOUNT", string(d.account))
	var none []jobView
	if d.json(&none, "job", "list"); none == nil || len(none) != 0 {
		t.Errorf("no jobs are %v", none)
	}
	first, second := d.must("job", "create"), d.must("job", "create")
	d.must("job", "fail", first, "--message", "directory_unreachable")
	other.must("job", "create", "--account", string(other.account))
	var jobs []jobView
	d.json(&jobs, "job", "list")
	states := map[string]string{}
	for _, job := range jobs {
		states[string(job.ID)] = string(job.Status)
	}
	if diff := cmp.Diff(map[string]string{first: "failed", second: "queued"}, states); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	d.want(exit.NotFound, "job", "list", "--account", "00000000-0000-0000-0000-000000000000")
	var accounts []accountRow
	d.json(&accounts, "account", "list")
	for _, owner := range []*fixture{d, other} {
		at := slices.IndexFunc(accounts, func(r accountRow) bool { return r.ID == owner.account })
		if at < 0 || accounts[at].Name != "Acme" || accounts[at].Workspace != output.Optional(owner.workspace) || accounts[at].State != "active" {
			t.Errorf("account %s is not among %+v", owner.account, accounts)
		}
	}
	if got := d.want(exit.Done, "account", "list"); !strings.Contains(got.stdout, string(d.account)) || got.stderr != "" {
		t.Errorf("listed:\n%s%s", got.stdout, got.stderr)
	}
}

func TestAJobIsItsAccountsAlone(t *testing.T) {
	d := newFixture(t)
	id := d.must("job", "create")
	other := newFixture(t) // the commands below are for its account
	other.want(exit.NotFound, "job", "show", id)
	other.want(exit.NotFound, "job", "start", id)
	other.want(exit.NotFound, "job", "fail", id, "--message", "m")
	other.want(exit.NotFound, "job", "create", "--account", "00000000-0000-0000-0000-000000000000")
	var got jobView
	d.json(&got, "job", "show", id, "--account", string(d.account))
	if got.Status != "queued" {
		t.Errorf("job %+v", got)
	}
}

func TestFilesAreUploadedListedAndDeleted(t *testing.T) {
	d := newFixture(t)
	path := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(path, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.must("file", "upload", path, "--id", "file_notes")
	d.want(exit.Refused, "file", "upload", path, "--id", "file_notes")
	made := strings.TrimSpace(d.feed("from a pipe", "file", "upload", "-").stdout)
	var got []fileView
	d.json(&got, "file", "list")
	sizes := map[string]int64{}
	for _, f := range got {
		sizes[string(f.ID)] = f.Bytes
	}
	if diff := cmp.Diff(map[string]int64{"file_notes": 5, made: 11}, sizes); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	d.must("file", "delete", "file_notes", "--yes")
	d.want(exit.NotFound, "file", "delete", "file_notes", "--yes")
	d.want(exit.Usage, "file", "delete", "notes", "--yes")
	d.want(exit.Usage, "file", "upload", path+".absent")
	d.must("workspace", "delete", string(d.workspace), "--yes")
	d.want(exit.Refused, "file", "upload", path, "--workspace", string(d.workspace))
	d.want(exit.NotFound, "file", "upload", path) // the account has no default any more
}
