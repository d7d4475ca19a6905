package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/prove/standin"
	"signalbox.dev/infra/testkit"
)

const root = "../.."

var dry *standin.StandIn

// TestMain starts the stand-in, which all tests take for AWS. Under the name sam the
// test binary is the SAM CLI.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "sam" {
		os.Exit(standin.Sam(os.Getenv("AWS_ENDPOINT_URL_CLOUDFORMATION"), os.Args[1:]))
	}
	code, err := start(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "no dry run (make engines functions .build/engines .build/admin first):", err)
		code = 1
	}
	os.Exit(code)
}

func start(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "prove-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, "sam"))
	}
	if err != nil {
		return 0, err
	}
	if dry, err = standin.New(root, dir); err != nil {
		return 0, err
	}
	for _, variable := range append(dry.Environment(), "PATH="+dir+":"+os.Getenv("PATH")) {
		name, value, _ := strings.Cut(variable, "=")
		if err := os.Setenv(name, value); err != nil {
			return 0, err
		}
	}
	code = m.Run()
	return code, dry.Close()
}

// proves runs the command.
func proves(t *testing.T, args ...string) (out, problems string, err error) {
	t.Helper()
	var o, e strings.Builder
	err = run(context.Background(), append(args[:1:1], append([]string{"-root", root}, args[1:]...)...), strings.NewReader(""), &o, &e)
	return o.String(), e.String(), err
}

// short are the flags of a dry run that waits for nothing.
var short = []string{"-yes", "-contract=false", "-patience", "2s", "-pace", "30ms"}

// TestProbesCanFail turns the switches of the stand-in on, some at a time: each
// probe reports exactly what its switch does, and all others PASS.
func TestProbesCanFail(t *testing.T) {
	type wrong struct{ probe, name string }
	var switches []wrong
	for _, p := range all() {
		if len(p.wrong) == 0 {
			t.Errorf("%s can be shown wrong by nothing", p.id)
		}
		for name := range p.wrong {
			if p.id != "contract" { // see TestVerify
				switches = append(switches, wrong{p.id, name})
			}
		}
	}
	slices.SortFunc(switches, func(a, b wrong) int { return strings.Compare(a.name, b.name) })
	// No two switches of a probe are on at once, and none is in the first run.
	runs := []map[string]string{{}}
	for _, s := range switches {
		i := slices.IndexFunc(runs[1:], func(on map[string]string) bool { return on[s.probe] == "" && len(on) < perRun }) + 1
		if i == 0 {
			runs = append(runs, map[string]string{})
			i = len(runs) - 1
		}
		runs[i][s.probe] = s.name
	}
	for i, on := range runs {
		t.Run(fmt.Sprint("run ", i), func(t *testing.T) {
			dry.Turn(slices.Collect(maps.Values(on))...)
			defer dry.Turn()
			out, problems, err := proves(t, append([]string{"run", "-stack", "signalbox-dry"}, short...)...)
			for _, p := range all() {
				want := pass
				if name, ok := on[p.id]; ok {
					want = p.wrong[name]
				}
				if p.id == "contract" {
					want = notAsked
				}
				if !strings.Contains(out, fmt.Sprintf("| `%s` | %s |", p.id, want)) {
					t.Errorf("%s is not %s with %q", p.id, want, on[p.id])
				}
			}
			if left := dry.Left(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if t.Failed() {
				t.Log(out, problems, err)
			}
		})
	}
}

// perRun is how many switches are on at once.
const perRun = 8

// watcher calls back when what is written to it contains a text.
type watcher struct {
	strings.Builder
	text string
	call func()
}

func (w *watcher) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.text) {
		w.call()
	}
	return w.Builder.Write(p)
}

// TestInterrupted: Ctrl-C during a deployment, and between two probes, leaves nothing;
// a removal that fails is finished by prove-clean, which can be repeated.
func TestInterrupted(t *testing.T) {
	for _, at := range []string{"sam deploy signalbox-dry:", "etag", "Canary10Percent"} {
		ctx, interrupt := context.WithCancel(t.Context())
		var out strings.Builder
		problems := &watcher{text: at, call: interrupt}
		if at == "etag" {
			dry.Turn("table-not-deleted")
		}
		err := run(ctx, append([]string{"run", "-root", root, "-stack", "signalbox-dry"}, short...), strings.NewReader(""), &out, problems)
		if err == nil || !strings.Contains(problems.String(), "Interrupted: everything is being removed") {
			t.Errorf("interrupted at %q: %v\n%s", at, err, problems.String())
		}
		if at == "etag" {
			if !strings.Contains(err.Error(), "make prove-clean STACK=signalbox-dry") || len(dry.Left()) == 0 {
				t.Errorf("the removal that fails: %v, left %q", err, dry.Left())
			}
			// An earlier removal may have ended between CancelKeyDeletion and EnableKey.
			dry.Turn("key-not-enabled")
			if _, _, err := proves(t, "clean", "-stack", "signalbox-dry"); err == nil {
				t.Error("a key that stays disabled is not reported")
			}
			dry.Turn()
			for range 2 {
				if out, problems, err := proves(t, "clean", "-stack", "signalbox-dry"); err != nil {
					t.Errorf("clean: %v\n%s%s", err, out, problems)
				}
			}
		}
		if left := dry.Left(); len(left) > 0 {
			t.Errorf("interrupted at %q, left: %q", at, left)
		}
	}
}

// TestOthersStacks: nothing is done with a stack, a bucket or a queue that prove did not
// make, nor in another region than the run's, and nothing is begun without consent. A
// stack that has only a change set is removed.
func TestOthersStacks(t *testing.T) {
	if _, _, err := proves(t, "run", "-stack", "signalbox-new"); err == nil || !strings.Contains(err.Error(), "not started") {
		t.Errorf("without an answer: %v", err)
	}
	if left := dry.Left(); len(left) > 0 {
		t.Errorf("made before it was agreed to: %q", left)
	}
	dry.Others("signalbox-new")
	dry.Reviewed("signalbox-new")
	there := len(dry.Left())
	record := filepath.Join(root, ".build", "prove", "signalbox-new.json")
	testkit.Must(t, os.WriteFile(record, []byte(`{"account":"`+standin.Account+`","region":"eu-central-2"}`), 0o600))
	if _, _, err := proves(t, "clean", "-stack", "signalbox-new"); err == nil || !strings.Contains(err.Error(), "AWS_REGION=eu-central-2") {
		t.Errorf("in another region: %v", err)
	}
	testkit.Must(t, os.Remove(record))
	out, _, err := proves(t, "clean", "-stack", "signalbox-new")
	if left := dry.Left(); err != nil || len(left) != there-1 || strings.Count(out, "prove did not make it") != 2 {
		t.Errorf("clean beside what is others': %v, left %q\n%s", err, left, out)
	}
	if _, _, err := proves(t, "run", "-stack", "signalbox-new"); err == nil || !strings.Contains(err.Error(), "prove did not make it") {
		t.Errorf("run beside what is others': %v", err)
	}
	dry.Foreign("signalbox-prod")
	before := len(dry.Left())
	for _, command := range []string{"run", "clean"} {
		_, _, err := proves(t, command, "-stack", "signalbox-prod")
		if err == nil || !strings.Contains(err.Error(), "prove did not make it") || len(dry.Left()) != before {
			t.Errorf("%s: %v, left %q", command, err, dry.Left())
		}
	}
}

// TestVerify: of a stack in use all that may be asked is asked, a wrong answer that
// only the contract suite notices included, and what was stored before is there
// afterwards and nothing else. A run that is interrupted cleans up too.
func TestVerify(t *testing.T) {
	testkit.Must(t, dry.Live(t.Context(), "signalbox-used"))
	dry.Turn("cache-control-dropped")
	defer dry.Turn()
	before := stored(t, "signalbox-used")
	out, problems, err := proves(t, "verify", "-stack", "signalbox-used")
	if err == nil || err.Error() != "failed: contract" || strings.Contains(problems, "NOT ASKED") {
		t.Errorf("%v\n%s%s", err, out, problems)
	}
	if diff := cmp.Diff(before, stored(t, "signalbox-used")); diff != "" {
		t.Errorf("stored (-before +after):\n%s", diff)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	err = run(ctx, []string{"verify", "-root", root, "-stack", "signalbox-used", "-contract=false"}, strings.NewReader(""),
		&strings.Builder{}, &watcher{text: "query-names", call: interrupt})
	if err == nil {
		t.Error("an interrupted run has passed")
	}
	if diff := cmp.Diff(before, stored(t, "signalbox-used")); diff != "" {
		t.Errorf("stored (-before +after an interruption):\n%s", diff)
	}
}

// stored are the keys of all that is stored in a stack, the control table aside, whose
// items expire.
func stored(t *testing.T, stack string) (keys []string) {
	t.Helper()
	c, err := connect(t.Context())
	testkit.Must(t, err)
	a := &asker{clients: c}
	a.target, err = c.target(t.Context(), stack)
	testkit.Must(t, err)
	for _, table := range []string{"AccessTableName", "CredentialsTableName", "SyncJobsTableName"} {
		for _, row := range (testkit.Rows{DB: c.db, Table: a.outputs[table]}.All(t)) {
			keys = append(keys, testkit.TextOf(row, "pk")+" "+testkit.TextOf(row, "sk"))
		}
	}
	objects, err := c.s3.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: a.bucket()})
	testkit.Must(t, err)
	for _, o := range objects.Versions {
		keys = append(keys, *o.Key)
	}
	slices.Sort(keys)
	return keys
}

// TestCatalogue: the documents' list is made of the probes.
func TestCatalogue(t *testing.T) {
	written, err := os.ReadFile("PROBES.md")
	if err != nil || string(written) != catalogue() {
		t.Errorf("go run . list >PROBES.md (%v)", err)
	}
	for _, document := range []string{"README.md", "infra/operations.md"} {
		text, err := os.ReadFile(filepath.Join(root, document)) //nolint:gosec // documents of the project
		if err != nil || !strings.Contains(string(text), "PROBES.md") {
			t.Errorf("%s does not refer to infra/prove/PROBES.md (%v)", document, err)
		}
	}
}
