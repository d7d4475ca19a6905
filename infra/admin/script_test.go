package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/byok"
)

// TestMain makes the test binary run as the command under the name admin.
func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"admin": main}) }

// apart runs a test that changes its process, for which no other test may be parallel, in a process
// of its own beside the others. It returns false in that process.
func apart(t *testing.T) bool {
	const variable = "SIGNALBOX_TEST_APART"
	if os.Getenv(variable) == t.Name() {
		return false
	}
	t.Parallel()
	_, some, _ := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	args := []string{"-test.run=^" + t.Name() + "$/" + some}
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "test.v" || f.Name == "test.timeout" || !strings.HasPrefix(f.Name, "test.") {
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	alone := exec.CommandContext(t.Context(), os.Args[0], args...) //nolint:gosec // this program
	alone.Env, alone.Stdout, alone.Stderr = append(os.Environ(), variable+"="+t.Name()), os.Stdout, os.Stderr
	if err := alone.Run(); err != nil {
		t.Error(err)
	}
	return true
}

// TestScripts follows each script of testdata, with a new directory and account. A line
// begins with the command's result, such as done or refused. After it, `-type TEXT` means a
// terminal on which TEXT is typed, and `-in FILE` a standard input. The commands run in this
// process, with the script's variables.
func TestScripts(t *testing.T) {
	if apart(t) {
		return
	}
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("there are no scripts: %v", err)
	}
	for _, script := range scripts {
		t.Run(filepath.Base(script), func(t *testing.T) {
			d := newOnEngines(t)
			variables := append(kit.Hostile(t), "SIGNALBOX_STACK=", "SIGNALBOX_ACCOUNT="+string(d.account), atOnce)
			if filepath.Base(script) == "target.txt" {
				variables = append(variables, controlPlane(t, d)...)
			}
			command := func(want int) func(*testscript.TestScript, bool, []string) {
				return func(ts *testscript.TestScript, _ bool, args []string) {
					defer give(ts, variables)()
					ends(ts, want, args)
				}
			}
			t.Chdir(".") // the test's cleanup returns to this folder
			testscript.Run(t, testscript.Params{
				Files: []string{script},
				Setup: func(env *testscript.Env) error {
					env.Vars = append(append(env.Vars, variables...), "ACCOUNT="+string(d.account),
						"WORKSPACE="+string(d.workspace), "ACCOUNT8="+string(d.account[:8]), "WORKSPACE8="+string(d.workspace[:8]), "NONE=00000000-0000-4000-8000-000000000000", "MARKER="+providerKey)
					kit.Must(t, os.CopyFS(filepath.Join(env.WorkDir, ".local"), os.DirFS(d.dir)))
					return errors.Join(os.Chdir(env.WorkDir), os.Remove(".local/demo.json"))
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"done": command(acts.Done), "uncertain": command(acts.Uncertain), "usage": command(acts.Usage),
					"absent": command(acts.NotFound), "refused": command(acts.Refused), "failed": command(acts.Failed), "keep": keep, "seal": d.sealScripted,
				},
			})
		})
	}
}

// give sets the script's variables in this process. The function that it returns removes
// them, because kit must not use them.
func give(ts *testscript.TestScript, variables []string) (take func()) {
	before := os.Environ()
	for _, variable := range variables {
		name, _, _ := strings.Cut(variable, "=")
		ts.Check(os.Unsetenv(name))
		if value := ts.Getenv(name); value != "" {
			ts.Check(os.Setenv(name, value))
		}
	}
	return func() {
		os.Clearenv()
		for _, variable := range before {
			name, value, _ := strings.Cut(variable, "=")
			ts.Check(os.Setenv(name, value))
		}
	}
}

func ends(ts *testscript.TestScript, want int, args []string) {
	var stdin, flag string
	if len(args) > 1 && (args[0] == "-type" || args[0] == "-in") {
		flag, stdin, args = args[0], args[1], args[2:]
	}
	if flag == "-in" {
		stdin = ts.ReadFile(stdin)
	}
	var stderr strings.Builder
	a := newApp(strings.NewReader(strings.ReplaceAll(stdin, `\n`, "\n")), ts.Stdout(), io.MultiWriter(ts.Stderr(), &stderr))
	a.terminal, a.interactive = flag == "-type", flag == "-type"
	a.pause = func(context.Context, time.Duration) error { return nil } // TestCases has what an act waits for
	if code := runWith(context.Background(), a, args); code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
	// A command that changes something names its target.
	shown := stderr.String()
	if changed := strings.Contains(shown, "target: ") && !slices.Contains(args, "--dry-run"); want == acts.Done && changed != strings.Contains(shown, "audit") {
		ts.Fatalf("has an audit line: %v, want %v", !changed, changed)
	}
}

// keep implements `keep VAR [PATTERN]`. It puts the last output into a variable. With a
// pattern, it keeps only the match of its group in the output or in standard error.
func keep(ts *testscript.TestScript, _ bool, args []string) {
	value := strings.TrimSpace(ts.ReadFile("stdout"))
	if len(args) > 1 {
		found := regexp.MustCompile(args[1]).FindStringSubmatch(value + "\n" + ts.ReadFile("stderr"))
		if found == nil {
			ts.Fatalf("no match for %s", args[1])
		}
		value = found[1]
	}
	setID(ts, args[0], value)
}

// setID sets a variable, and one with 8 after its name to the form in which lists show ids.
func setID(ts *testscript.TestScript, name, value string) {
	ts.Setenv(name, value)
	ts.Setenv(name+"8", value[:min(8, len(value))])
}

// sealScripted implements `seal VAR DRAFT`. It stores a credential of the account's default
// workspace with these settings, and puts its id into a variable.
func (d *fixture) sealScripted(ts *testscript.TestScript, _ bool, args []string) {
	id := d.seal(d.workspace, args[0], func(draft *byok.Draft) { ts.Check(json.Unmarshal([]byte(args[1]), draft)) })
	setID(ts, args[0], string(id))
}

// controlPlane fakes CloudFormation and STS, which have no local engine. It knows two
// stacks: signalbox, and another, which lacks the outputs that admin needs. It returns the
// environment variables with which a command reaches it.
func controlPlane(t *testing.T, d *fixture) []string {
	t.Helper()
	at := d.reached()
	var outputs strings.Builder
	for field, value := range reflect.ValueOf(d.outputs()).Fields() {
		fmt.Fprintf(&outputs, "<member><OutputKey>%s</OutputKey><OutputValue>%s</OutputValue></member>", field.Name, value)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		switch {
		case r.FormValue("Action") == "GetCallerIdentity":
			_, _ = fmt.Fprint(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>`+
				`<Arn>arn:aws:iam::123456789012:user/operator</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>`)
		case r.FormValue("Action") == "AssumeRole" && r.FormValue("TokenCode") == "123456":
			_, _ = fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey>`+
				`<SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`, at.AccessKeyID, at.SecretAccessKey)
		case r.FormValue("StackName") == "signalbox" || r.FormValue("StackName") == "another":
			shown := map[string]string{"signalbox": outputs.String()}[r.FormValue("StackName")]
			_, _ = fmt.Fprint(w, `<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><DescribeStacksResult><Stacks><member>`+
				`<StackId>arn:aws:cloudformation:us-east-1:123456789012:stack/signalbox/1</StackId><StackName>signalbox</StackName><StackStatus>CREATE_COMPLETE</StackStatus><CreationTime>2026-01-01T00:00:00Z</CreationTime><Outputs>`+
				`<member><OutputKey>ApiBaseUrl</OutputKey><OutputValue>https://example</OutputValue></member>`+shown+`</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`)
		default:
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, `<ErrorResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><Error><Type>Sender</Type>`+
				`<Code>ValidationError</Code><Message>Stack with id does not exist</Message></Error></ErrorResponse>`)
		}
	}))
	t.Cleanup(server.Close)
	return []string{
		"AWS_PROFILE=", "AWS_DEFAULT_REGION=", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=", "AWS_SESSION_TOKEN=", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ACCESS_KEY_ID=" + at.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + at.SecretAccessKey,
		"AWS_REGION=us-east-1", "AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
		"AWS_ENDPOINT_URL_CLOUDFORMATION=" + server.URL, "AWS_ENDPOINT_URL_STS=" + server.URL,
		"AWS_ENDPOINT_URL_DYNAMODB=" + at.DynamoDB, "AWS_ENDPOINT_URL_S3=" + at.S3,
	}
}
