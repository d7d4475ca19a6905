package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/exit"
)

func TestEveryChangeLeavesAnAuditLine(t *testing.T) {
	d := newFixture(t)
	done := d.do("key", "create", "ci").audits()
	if len(done) != 1 || done[0]["action"] != "key.create" || done[0]["outcome"] != "done" ||
		done[0]["account"] != string(d.account) || done[0]["user"] == "" || done[0]["key"] == "" {
		t.Errorf("audit of a success: %v", done)
	}
	refused := d.do("key", "delete", strings.Repeat("0", arguments.HashLength), "--yes").audits()
	if len(refused) != 1 || refused[0]["action"] != "key.delete" || refused[0]["outcome"] != "refused" {
		t.Errorf("audit of a refusal: %v", refused)
	}
	if read := d.do("key", "list").audits(); len(read) != 0 {
		t.Errorf("audit of a list: %v", read)
	}
}

func TestAuditLinesAreAppendedToAFile(t *testing.T) {
	d := newFixture(t)
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	first := d.want(exit.Done, "--audit-file", file, "workspace", "create", "one")
	shown := d.typed("", "--audit-file", file, "workspace", "create", "two")
	d.want(exit.Done, "--audit-file", file, "workspace", "list")
	written, err := os.ReadFile(file) //nolint:gosec // a file of this test
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	lines := answer{stderr: string(written)}.audits()
	if len(lines) != 2 || lines[0]["workspace"] != strings.TrimSpace(first.stdout) || lines[1]["workspace"] != strings.TrimSpace(shown.stdout) ||
		lines[1]["action"] != "workspace.create" || lines[1]["target"] != "the local edition ("+d.dir+")" {
		t.Errorf("the file has\n%s", written)
	}
	if got := first.audits(); len(got) != 1 || got[0]["workspace"] != lines[0]["workspace"] {
		t.Errorf("standard error has %v", got)
	}
	if want := "audit: workspace.create done: user "; len(shown.audits()) != 0 || !strings.Contains(shown.stderr, want) || !strings.Contains(shown.stderr, ", workspace "+strings.TrimSpace(shown.stdout)) {
		t.Errorf("a terminal shows %s", shown.stderr)
	}
}

// A line that cannot be kept is no secret, and a file that cannot be opened
// stops the command before it does anything.
func TestAnAuditFileThatFails(t *testing.T) {
	d := newFixture(t)
	before := d.must("workspace", "list")
	if got := d.want(exit.Usage, "--audit-file", filepath.Join(t.TempDir(), "absent", "audit"), "workspace", "create", "w"); !strings.Contains(got.stderr, "nothing was done") {
		t.Errorf("%s", got.stderr)
	}
	if after := d.must("workspace", "list"); after != before {
		t.Errorf("changed:\n%s", after)
	}
	made := d.want(exit.Uncertain, "--audit-file", "/dev/full", "workspace", "create", "w")
	if !strings.Contains(made.stderr, "workspace.create (done) could not be written") || !strings.Contains(d.must("workspace", "list"), strings.TrimSpace(made.stdout)) {
		t.Errorf("%s%s", made.stdout, made.stderr)
	}
	missing := d.want(exit.NotFound, "--audit-file", "/dev/full", "workspace", "delete", "00000000-0000-0000-0000-000000000000", "--yes")
	if !strings.Contains(missing.stderr, "workspace.delete (refused) could not be written") {
		t.Errorf("%s", missing.stderr)
	}
}

// Under --json every line of standard error is JSON.
func TestErrorsAreJSONWhereResultsAre(t *testing.T) {
	d := newFixture(t)
	for _, c := range []struct {
		code    int
		message string
		args    []string
	}{
		{exit.Usage, "unexpected argument", []string{"key", "lend"}},
		{exit.Usage, "is not an id", []string{"job", "show", "<&>"}},
		{exit.NotFound, "no such sync job", []string{"job", "show", "00000000-0000-0000-0000-000000000000"}},
		{exit.NotFound, "no such workspace", []string{"workspace", "delete", "00000000-0000-0000-0000-000000000000", "--yes"}},
		{exit.Done, "", []string{"key", "create", "k"}},
	} {
		plain := d.want(c.code, c.args...)
		for name, got := range map[string]answer{
			"first": d.do(append([]string{"--json"}, c.args...)...), "last": d.do(append(c.args, "--json")...),
			"on a terminal": d.typed("", append(c.args, "--json")...),
		} {
			var message string
			for line := range strings.Lines(got.stderr) {
				var read struct {
					Error struct {
						Message string `json:"message"`
					} `json:"error"`
				}
				if err := json.Unmarshal([]byte(line), &read); err != nil {
					t.Errorf("%v, --json %s: %v in %s", c.args, name, err, line)
				}
				message += read.Error.Message
			}
			if got.code != c.code || c.message != "" && (!strings.Contains(message, c.message) || !strings.Contains(plain.stderr, "admin: "+message)) {
				t.Errorf("%v, --json %s: exit code %d: %s", c.args, name, got.code, got.stderr)
			}
		}
	}
}
