package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/shared/auth"
)

// reason is why the API would not let the key in; "" where it would.
func (d *desk) reason(hash auth.KeyHash) auth.Reason {
	d.Helper()
	verifier := auth.NewVerifier(dynamodb.NewFromConfig(d.engines.Config), d.engines.Tables.Access)
	_, err := verifier.Verify(d.Context(), hash)
	if rejection, ok := errors.AsType[*auth.Rejection](err); ok {
		return rejection.Reason
	}
	if err != nil {
		d.Fatal(err)
	}
	return ""
}

func TestAKeyIsShownOnce(t *testing.T) {
	d := newDesk(t)
	made := d.do("key", "create", "ci", "--kind", "management")
	token := strings.TrimSuffix(made.stdout, "\n")
	hash := auth.HashKey(token)
	if made.code != exitDone || !strings.HasPrefix(token, "sbx_") || d.reason(hash) != "" {
		t.Fatalf("exit code %d, a key of %d characters, let in: %q", made.code, len(token), d.reason(hash))
	}
	if !strings.Contains(made.stderr, "only time") || !strings.Contains(made.stderr, string(hash)) {
		t.Errorf("the operator is told: %s", made.stderr)
	}
	listed := d.do("key", "list")
	for _, where := range []string{made.stderr, listed.stdout, listed.stderr, d.must("--json", "key", "list")} {
		if strings.Contains(where, token[4:]) {
			t.Errorf("the key is shown again: %s", where)
		}
	}
	if !strings.Contains(listed.stdout, hash.Short()) || !strings.Contains(listed.stdout, "management") {
		t.Errorf("listed: %s", listed.stdout)
	}
}

func TestAKeyIsChangedByTheBeginningOfItsHash(t *testing.T) {
	d := newDesk(t)
	var made createdKeyView
	d.json(&made, "key", "create", "ci", "--workspace", string(d.workspace), "--expires-in", "1h")
	if made.State != "active" || string(made.Workspace) != string(d.workspace) || made.ExpiresAt == "" {
		t.Errorf("made %+v", made)
	}
	for _, step := range []struct {
		verb string
		want auth.Reason
	}{{"disable", auth.Disabled}, {"enable", ""}, {"delete", auth.UnknownKey}} {
		d.must("key", step.verb, string(made.Hash[:8]))
		if got := d.reason(made.Hash); got != step.want {
			t.Errorf("after %s: %q, want %q", step.verb, got, step.want)
		}
	}
	d.want(exitNotFound, "key", "disable", string(made.Hash))
	d.want(exitNotFound, "key", "disable", string(made.Hash[:8]))
	d.want(exitUsage, "key", "disable", string(made.Hash[:7]))
}

func TestKeysThatCannotBe(t *testing.T) {
	d := newDesk(t)
	other := newDesk(t)
	t.Setenv("SIGNALBOX_ACCOUNT", string(d.account))
	d.want(exitUsage, "key", "create", "k", "--kind", "root")
	d.want(exitUsage, "key", "create", "k", "--kind", "management", "--workspace", string(d.workspace))
	d.want(exitUsage, "key", "create", "k", "--expires-in", "-1h")
	d.want(exitUsage, "key", "create", "k", "--expires-at", "2001-01-01T00:00:00Z")
	d.want(exitUsage, "key", "create", "k", "--expires-in", "1h", "--expires-at", "2101-01-01T00:00:00Z")
	d.want(exitUsage, "key", "create", "")
	d.want(exitNotFound, "key", "create", "k", "--workspace", string(other.workspace))
	d.want(exitNotFound, "key", "create", "k", "--account", "00000000-0000-0000-0000-000000000000")
	d.must("workspace", "delete", string(d.workspace))
	d.want(exitRefused, "key", "create", "k", "--workspace", string(d.workspace))
}

func TestEveryChangeLeavesAnAuditLine(t *testing.T) {
	d := newDesk(t)
	done := d.do("key", "create", "ci").audits()
	if len(done) != 1 || done[0]["action"] != "key.create" || done[0]["outcome"] != "done" ||
		done[0]["account"] != string(d.account) || done[0]["user"] == "" || done[0]["key"] == "" {
		t.Errorf("audit of a success: %v", done)
	}
	refused := d.do("key", "delete", strings.Repeat("0", hashLength)).audits()
	if len(refused) != 1 || refused[0]["action"] != "key.delete" || refused[0]["outcome"] != "refused" {
		t.Errorf("audit of a refusal: %v", refused)
	}
	if read := d.do("key", "list").audits(); len(read) != 0 {
		t.Errorf("audit of a list: %v", read)
	}
}
