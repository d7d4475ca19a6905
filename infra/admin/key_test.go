package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
)

// reason is why the API would not let the key in; "" where it would.
func (d *fixture) reason(hash auth.KeyHash) auth.Reason {
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
	d := newFixture(t)
	made := d.do("key", "create", "ci", "--kind", "management")
	token := strings.TrimSuffix(made.stdout, "\n")
	hash := auth.HashKey(token)
	if made.code != exit.Done || !strings.HasPrefix(token, "sbx_") || d.reason(hash) != "" {
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
	d := newFixture(t)
	var made createdKeyView
	d.json(&made, "key", "create", "ci", "--workspace", string(d.workspace), "--expires-in", "1h")
	if made.State != "active" || string(made.Workspace) != string(d.workspace) || made.ExpiresAt == "" {
		t.Errorf("made %+v", made)
	}
	for _, step := range []struct {
		verb  string
		want  auth.Reason
		flags []string
	}{{"disable", auth.Disabled, nil}, {"enable", "", nil}, {"delete", auth.UnknownKey, []string{"--yes"}}} {
		d.must(append([]string{"key", step.verb, string(made.Hash[:8])}, step.flags...)...)
		if got := d.reason(made.Hash); got != step.want {
			t.Errorf("after %s: %q, want %q", step.verb, got, step.want)
		}
	}
	d.want(exit.NotFound, "key", "disable", string(made.Hash))
	d.want(exit.NotFound, "key", "disable", string(made.Hash[:8]))
	for wrong, want := range map[string]string{
		string(made.Hash[:7]): "too short", "": "too short", string(made.Hash) + "0": "not a key's hash", made.Key: "not a key's hash",
	} {
		got := d.want(exit.Usage, "key", "disable", wrong)
		if !strings.Contains(got.stderr, want) || strings.Contains(got.stderr, made.Key) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%d characters: %s", len(wrong), got.stderr)
		}
	}
}

func TestAnEndIsGivenInDaysToo(t *testing.T) {
	for given, want := range map[string]time.Duration{
		"90d": 90 * 24 * time.Hour, "1d": 24 * time.Hour, "36500d": arguments.MaxDays * 24 * time.Hour, "36h": 36 * time.Hour, "1h30m": 90 * time.Minute,
		"0d": 0, "0s": 0, "-1d": 0, "-9223372036854775807d": 0, "-2147483648d": 0, "-1h": 0, "36501d": 0, "2147483647d": 0, "99999999999d": 0, "876001h": 0,
		"90": 0, "d": 0, "": 0, "1.5d": 0, "1d12h": 0, "ten days": 0,
	} {
		got, err := arguments.ParseLifetime(given)
		if time.Duration(got) != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %s, %v", given, time.Duration(got), err)
		}
	}
	d := newFixture(t)
	now := time.Now().UTC().Truncate(time.Second)
	d.stopped(now, nil)
	var made createdKeyView
	d.json(&made, "key", "create", "k", "--expires-in", "90d")
	if made.ExpiresAt != output.When(now.AddDate(0, 0, 90)) {
		t.Errorf("made at %s it ends at %s", now, made.ExpiresAt)
	}
	d.want(exit.Usage, "key", "create", "k", "--expires-in", "0h")
}

// Callers need whole hashes for allow-lists; only a table that does not fit
// otherwise has short ones.
func TestKeysAreListedByTheirWholeHash(t *testing.T) {
	d := newFixture(t)
	var made createdKeyView
	d.json(&made, "key", "create", "ci", "--workspace", string(d.workspace))
	var listed []keyView
	d.json(&listed, "key", "list")
	if len(listed) != 1 || listed[0].Hash != made.Hash {
		t.Errorf("as JSON: %+v", listed)
	}
	for width, c := range map[int]struct {
		hash  string
		lines int
	}{0: {string(made.Hash), 2}, 200: {string(made.Hash), 2}, 120: {made.Hash.Short(), 2}, 80: {string(made.Hash), 7}, 20: {string(made.Hash), 7}} {
		var stdout, stderr bytes.Buffer
		a := newApp(nil, &stdout, &stderr)
		a.width = width
		code := a.run(t.Context(), []string{"--local", d.dir, "key", "list"})
		shown := stdout.String()
		if code != exit.Done || !slices.Contains(strings.Fields(shown), c.hash) || strings.Count(shown, "\n") != c.lines {
			t.Errorf("%d columns, exit code %d:\n%s%s", width, code, shown, &stderr)
		}
	}
}

func TestKeysThatCannotBe(t *testing.T) {
	d := newFixture(t)
	other := newFixture(t)
	t.Setenv("SIGNALBOX_ACCOUNT", string(d.account))
	d.want(exit.Usage, "key", "create", "k", "--kind", "root")
	d.want(exit.Usage, "key", "create", "k", "--kind", "management", "--workspace", string(d.workspace))
	d.want(exit.Usage, "key", "create", "k", "--expires-in", "-1h")
	d.want(exit.Usage, "key", "create", "k", "--expires-at", "2001-01-01T00:00:00Z")
	d.want(exit.Usage, "key", "create", "k", "--expires-in", "1h", "--expires-at", "2101-01-01T00:00:00Z")
	d.want(exit.Usage, "key", "create", "")
	d.want(exit.NotFound, "key", "create", "k", "--workspace", string(other.workspace))
	d.want(exit.NotFound, "key", "create", "k", "--account", "00000000-0000-0000-0000-000000000000")
	d.must("workspace", "delete", string(d.workspace), "--yes")
	d.want(exit.Refused, "key", "create", "k", "--workspace", string(d.workspace))
}
