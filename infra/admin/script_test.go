package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/rogpeppe/go-internal/testscript"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/byok"
)

// TestMain makes the test binary the command itself under the name admin, and the
// command on a terminal, on which $TYPED is typed, under the name typed.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"admin": main,
		"typed": func() {
			a := newApp(strings.NewReader(os.Getenv("TYPED")), os.Stdout, os.Stderr)
			a.terminal, a.interactive = true, true
			os.Exit(a.run(context.Background(), os.Args[1:]))
		},
	})
}

// TestScripts follows each script of testdata in a directory in which an edition of
// its own runs, with an account of its own. A line begins with what the command is
// to end with; `-type TEXT` after it means a terminal on which TEXT is typed.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("there are no scripts: %v", err)
	}
	for _, script := range scripts {
		t.Run(filepath.Base(script), func(t *testing.T) {
			d := newFixture(t)
			hostile, cloud := testkit.Hostile(t), []string(nil)
			if name := filepath.Base(script); name == "target.txt" || name == "screens.txt" {
				cloud = append(controlPlane(t, d), "AWS_PROFILE=", "AWS_DEFAULT_REGION=", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=", "AWS_SESSION_TOKEN=")
			}
			testscript.Run(t, testscript.Params{
				Files: []string{script},
				Setup: func(env *testscript.Env) error {
					// Under the race detector every command would sleep for a second as it ends.
					env.Vars = append(env.Vars, append(append(hostile, cloud...), "GORACE=atexit_sleep_ms=0", "SIGNALBOX_ACCOUNT="+string(d.account), "ACCOUNT="+string(d.account),
						"WORKSPACE="+string(d.workspace), "NONE=00000000-0000-4000-8000-000000000000", "MARKER="+providerKey)...)
					return os.CopyFS(filepath.Join(env.WorkDir, ".local"), os.DirFS(d.dir))
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"done": ends(exit.Done), "uncertain": ends(exit.Uncertain), "usage": ends(exit.Usage),
					"absent": ends(exit.NotFound), "refused": ends(exit.Refused), "failed": ends(exit.Failed), "keep": keep, "seal": d.sealScripted, "spoil": d.spoil,
				},
			})
		})
	}
}

// ends returns the script command that runs a command line and compares its exit code.
func ends(want int) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		command := "admin"
		if len(args) > 1 && args[0] == "-type" {
			command = "typed"
			ts.Setenv("TYPED", strings.ReplaceAll(args[1], `\n`, "\n"))
			args = args[2:]
		}
		code, err := 0, ts.Exec(command, args...)
		if exited, ok := errors.AsType[*exec.ExitError](err); ok {
			code = exited.ExitCode()
		} else {
			ts.Check(err)
		}
		if code != want {
			ts.Fatalf("exit code %d, want %d", code, want)
		}
		// A command that changes something names its target.
		shown := ts.ReadFile("stderr")
		if changed := strings.Contains(shown, "target: ") && !slices.Contains(args, "--dry-run"); want == exit.Done && changed != strings.Contains(shown, "audit") {
			ts.Fatalf("an audit line: %v, want %v", !changed, changed)
		}
	}
}

// keep VAR [PATTERN] puts the last output, or what the pattern's group matches in it
// or in standard error, into a variable.
func keep(ts *testscript.TestScript, _ bool, args []string) {
	value := strings.TrimSpace(ts.ReadFile("stdout"))
	if len(args) > 1 {
		found := regexp.MustCompile(args[1]).FindStringSubmatch(value + "\n" + ts.ReadFile("stderr"))
		if found == nil {
			ts.Fatalf("no match for %s", args[1])
		}
		value = found[1]
	}
	ts.Setenv(args[0], value)
}

// sealScripted is seal VAR DRAFT: it stores a credential of the account's default
// workspace with these settings, and puts its id into a variable.
func (d *fixture) sealScripted(ts *testscript.TestScript, _ bool, args []string) {
	id := d.seal(d.workspace, args[0], func(draft *byok.Draft) { ts.Check(json.Unmarshal([]byte(args[1]), draft)) })
	ts.Setenv(args[0], string(id))
}

// spoil is spoil CREDENTIAL: its row cannot be read any more.
func (d *fixture) spoil(_ *testscript.TestScript, _ bool, args []string) {
	d.set(d.engines.Tables.Credentials, "workspace#"+string(d.workspace), "credential#"+args[0], "name", &types.AttributeValueMemberBOOL{})
}
