package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
)

// typed executes a command line on a terminal, on which this is typed.
func (d *fixture) typed(text string, args ...string) answer {
	before := d.change
	defer func() { d.change = before }()
	d.change = func(a *app) {
		if before != nil {
			before(a)
		}
		a.terminal, a.interactive = true, true
	}
	return d.feed(text, args...)
}

// state lists everything in the account.
func (d *fixture) state(workspace string) (listed []string) {
	d.Helper()
	for _, args := range [][]string{
		{"workspace", "list"}, {"key", "list"}, {"credential", "list", "--workspace", workspace}, {"file", "list", "--workspace", workspace},
	} {
		listed = append(listed, d.must(args...))
	}
	return listed
}

// Whatever destroys something asks first, and without a confirmation changes
// nothing.
func TestNothingIsDestroyedUnconfirmed(t *testing.T) {
	d := newFixture(t)
	d.stopped(time.Now().Add(settled), func(time.Duration) error { return nil })
	var key createdKeyView
	d.json(&key, "key", "create", "first key")
	workspace := d.must("workspace", "create", "second one")
	place, credential := []string{"--workspace", string(d.workspace)}, string(d.seal(d.workspace, "my credential"))
	if got := d.feed("x", "file", "upload", "-", "--id", "file_a"); got.code != exit.Done {
		t.Fatal(got.stderr)
	}
	for _, c := range []struct {
		args  []string
		names []string
	}{
		{[]string{"key", "delete", string(key.Hash[:8])}, []string{"first key", key.Hash.Short(), string(key.Hash)}},
		{append([]string{"credential", "delete", credential}, place...), []string{"my credential", credential}},
		{append([]string{"file", "delete", "file_a"}, place...), []string{"file_a"}},
		{[]string{"workspace", "delete", workspace}, []string{"second one", workspace}},
		{[]string{"workspace", "purge", workspace}, []string{"second one", workspace}},
	} {
		before := d.state(string(d.workspace))
		refused := func(want int, got answer) {
			t.Helper()
			if got.code != want || !strings.Contains(got.stderr, "nothing was changed") || got.stdout != "" || strings.Contains(got.stderr, "audit") {
				t.Errorf("%v: exit code %d, want %d: %s%s", c.args, got.code, want, got.stdout, got.stderr)
			}
		}
		if none := d.feed(c.names[0]+"\n", c.args...); !strings.Contains(none.stderr, "--yes") {
			t.Errorf("%v without a terminal: %s", c.args, none.stderr)
		}
		refused(exit.Usage, d.feed(c.names[0]+"\n", c.args...))
		for _, text := range []string{"", "\n", "y\n", "yes\n", c.names[0], strings.ToUpper(c.names[0]) + "\n", c.names[0] + "0\n", "\n" + c.names[0] + "\n"} {
			refused(exit.Refused, d.typed(text, c.args...))
		}
		if diff := cmp.Diff(before, d.state(string(d.workspace))); diff != "" {
			t.Fatalf("%v changed (-before +after):\n%s", c.args, diff)
		}
		for _, name := range c.names[:len(c.names)-1] {
			if got := d.typed("n\n", c.args...); !strings.Contains(got.stderr, name) {
				t.Errorf("%v does not show %s: %s", c.args, name, got.stderr)
			}
		}
		if got := d.typed(c.names[0]+"\n", c.args...); got.code != exit.Done || !strings.Contains(got.stderr, "audit: "+c.args[0]+"."+c.args[1]+" done: user ") {
			t.Errorf("%v, confirmed: exit code %d: %s", c.args, got.code, got.stderr)
		}
	}
	for _, args := range [][]string{
		{"key", "delete", string(key.Hash)}, append([]string{"credential", "delete", credential}, place...),
		{"workspace", "delete", "00000000-0000-0000-0000-000000000000"}, {"workspace", "purge", "00000000-0000-0000-0000-000000000000"},
	} {
		if got := d.typed("", args...); got.code != exit.NotFound || strings.Contains(got.stderr, "confirm:") {
			t.Errorf("%v of what is not there: exit code %d: %s", args, got.code, got.stderr)
		}
	}
	if got := d.typed("default\n", "workspace", "purge", string(d.workspace)); got.code != exit.Refused || strings.Contains(got.stderr, "confirm:") {
		t.Errorf("purging a live workspace: exit code %d: %s", got.code, got.stderr)
	}
}

// A stored row that cannot be read has no name.
func TestNothingTypedConfirmsNothing(t *testing.T) {
	s := &session{interactive: true, stdin: strings.NewReader("\n"), stderr: io.Discard}
	err := confirmation{}.confirm(t.Context(), s, func() (subject, error) { return subject{"removes it", []string{"", "id"}}, nil })
	if exit.Code(err, false) != exit.Refused {
		t.Error(err)
	}
}

// reader is called when it is read.
type reader func([]byte) (int, error)

func (r reader) Read(into []byte) (int, error) { return r(into) }

// An interruption ends the wait for an answer.
func TestAnInterruptedConfirmationChangesNothing(t *testing.T) {
	d := newFixture(t)
	ctx, interrupt := context.WithCancel(t.Context())
	d.change = func(a *app) { a.interactive = true }
	silent := reader(func([]byte) (int, error) {
		interrupt()
		select {} // nothing is typed
	})
	got := d.run(ctx, silent, "workspace", "delete", string(d.workspace))
	if got.code != exit.Refused || !strings.Contains(got.stderr, "nothing was changed") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	if listed := d.must("workspace", "list"); strings.Contains(listed, "deleted") {
		t.Errorf("the workspace is deleted:\n%s", listed)
	}
}

// Every command either is marked as one that reads, or names its target; every
// one that destroys has the flag --yes.
func TestEveryCommandIsOfAKind(t *testing.T) {
	var given commandLine
	parser, err := newApp(nil, io.Discard, io.Discard).parser(t.Context(), &given)
	testkit.Must(t, err)
	for _, command := range parser.Model.Leaves(false) {
		if command.Parent == parser.Model.Node {
			continue // completion, help and status
		}
		if reads := slices.Contains([]string{"list", "show", "find", "check", "plan"}, command.Name); reads != command.Tag.Has("reads") {
			t.Errorf("%s is marked as one that reads: %t", command.FullPath(), !reads)
		}
		asks := slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == "yes" })
		if destroys := slices.Contains([]string{"delete", "purge"}, command.Name); destroys && !asks {
			t.Errorf("%s does not ask", command.FullPath())
		}
	}
}

// If the response to a deletion is lost, the repeated call finds nothing.
func TestADeletionThatIsSentTwiceIsUncertain(t *testing.T) {
	d := newFixture(t)
	credential := string(d.seal(d.workspace, "n"))
	d.broken().Inject(faults.Rule{Operation: "DeleteItem", Attempt: 1, Fault: faults.LoseAnswer()})
	got := d.want(exit.NotFound, "credential", "delete", credential, "--workspace", string(d.workspace), "--yes")
	if audits := got.audits(); len(audits) != 1 || audits[0]["outcome"] != "uncertain" || d.left(d.workspace) != 0 {
		t.Errorf("%v; %s", audits, got.stderr)
	}
	if audits := d.want(exit.NotFound, "key", "delete", strings.Repeat("0", 64), "--yes").audits(); len(audits) != 1 || audits[0]["outcome"] != "refused" {
		t.Errorf("without a repetition: %v", audits)
	}
}
