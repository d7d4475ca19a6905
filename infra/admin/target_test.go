package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"signalbox.dev/infra/admin/exit"
)

func TestHelpIsNoError(t *testing.T) {
	for _, args := range [][]string{{}, {"--local", "x"}, {"--help"}, {"key", "--help"}, {"key", "create", "-h"}} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, nil, &stdout, &stderr); code != exit.Done || stderr.Len() > 0 || !strings.Contains(stdout.String(), "Usage:") {
			t.Errorf("%v: exit code %d\n%s%s", args, code, &stdout, &stderr)
		}
	}
}

func TestNonsenseIsOneSentence(t *testing.T) {
	for _, args := range [][]string{{"key"}, {"key", "lend"}, {"job", "create", "--account", "acme"}, {"--nonsense"}} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), args, nil, &stdout, &stderr)
		if code != exit.Usage || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%v: exit code %d\n%s%s", args, code, &stdout, &stderr)
		}
	}
}

func TestALocalEditionThatCannotBeReached(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	stack := `{"region":"us-east-1","endpoints":{"dynamodb":"` + gone.URL + `","s3":"` + gone.URL + `"},"access_key_id":"a","secret_access_key":"b",` +
		`"outputs":{"AccessTableName":"a","CredentialsTableName":"c","SyncJobsTableName":"s","FilesBucketName":"f","SealingKeyArn":"k","OwnSealingKeyArn":"k"}}`
	for name, c := range map[string]struct{ written, want string }{
		"never started": {"", "make run"},
		"not running":   {stack, "make run"},
		"broken":        {"{", "not JSON"},
		"of no use":     {`{"outputs":{}}`, "no output"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.written != "" {
				if err := os.WriteFile(filepath.Join(dir, "stack.json"), []byte(c.written), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("SIGNALBOX_STACK", "production")
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), []string{"--local", dir, "account", "create", "Acme"}, nil, &stdout, &stderr)
			if code != exit.Uncertain || !strings.Contains(stderr.String(), c.want) {
				t.Errorf("exit code %d: %s", code, &stderr)
			}
		})
	}
}

// controlPlane stands in for CloudFormation and STS, of which there is no local
// engine: it knows one stack, in whose environment the test then is. It returns
// the number of calls so far.
func controlPlane(t *testing.T, d *fixture) (calls func() int64) {
	t.Helper()
	known := d.outputs()
	var called atomic.Int64
	member := func(name, value string) string {
		return fmt.Sprintf("<member><OutputKey>%s</OutputKey><OutputValue>%s</OutputValue></member>", name, value)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called.Add(1)
		w.Header().Set("Content-Type", "text/xml")
		switch {
		case r.FormValue("Action") == "GetCallerIdentity":
			_, _ = fmt.Fprint(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>`+
				`<Arn>arn:aws:iam::123456789012:user/operator</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>`)
		case r.FormValue("StackName") == "signalbox":
			_, _ = fmt.Fprint(w, `<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><DescribeStacksResult><Stacks><member>`+
				`<StackId>arn:aws:cloudformation:us-east-1:123456789012:stack/signalbox/1</StackId><StackName>signalbox</StackName><StackStatus>CREATE_COMPLETE</StackStatus><CreationTime>2026-01-01T00:00:00Z</CreationTime><Outputs>`+
				member("ApiBaseUrl", "https://example")+member("AccessTableName", known.AccessTableName)+
				member("CredentialsTableName", known.CredentialsTableName)+member("SyncJobsTableName", known.SyncJobsTableName)+
				member("FilesBucketName", known.FilesBucketName)+
				member("SealingKeyArn", known.SealingKeyArn)+member("OwnSealingKeyArn", known.OwnSealingKeyArn)+
				`</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`)
		default:
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, `<ErrorResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><Error><Type>Sender</Type>`+
				`<Code>ValidationError</Code><Message>Stack with id does not exist</Message></Error></ErrorResponse>`)
		}
	}))
	t.Cleanup(server.Close)
	credentials, err := d.engines.Config.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": credentials.AccessKeyID, "AWS_SECRET_ACCESS_KEY": credentials.SecretAccessKey,
		"AWS_REGION": "us-east-1", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_ENDPOINT_URL_CLOUDFORMATION": server.URL, "AWS_ENDPOINT_URL_STS": server.URL,
		"AWS_ENDPOINT_URL_DYNAMODB": d.endpoint("DynamoDB"), "AWS_ENDPOINT_URL_S3": d.endpoint("S3"),
	} {
		t.Setenv(name, value)
	}
	return called.Load
}

// on executes a command line as it is, on the target that it names.
func on(t *testing.T, args ...string) answer {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
	return answer{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

func TestADeployedStackIsFoundByItsName(t *testing.T) {
	d := newFixture(t)
	controlPlane(t, d)
	t.Setenv("AWS_REGION", "")
	t.Setenv("SIGNALBOX_STACK", "nobody")
	made := on(t, "--stack", "signalbox", "--region", "us-east-1", "workspace", "create", "cloud")
	if made.code != exit.Done || !strings.Contains(made.stderr, `"aws_identity":"arn:aws:iam::123456789012:user/operator"`) {
		t.Fatalf("exit code %d: %s", made.code, made.stderr)
	}
	if first, _, _ := strings.Cut(made.stderr, "\n"); first != "target: stack signalbox in us-east-1, account 123456789012" {
		t.Errorf("it begins with %q", first)
	}
	if listed := d.must("workspace", "list"); !strings.Contains(listed, strings.TrimSpace(made.stdout)) {
		t.Errorf("made %s, listed:\n%s", made.stdout, listed)
	}
	for _, args := range [][]string{{"--stack", "nobody"}, {}} {
		got := on(t, append(args, "--region", "us-east-1", "workspace", "list")...)
		if got.code != exit.Uncertain || !strings.Contains(got.stderr, "ValidationError") {
			t.Errorf("unknown stack: exit code %d: %s", got.code, got.stderr)
		}
	}
	if got := on(t, "--stack", "signalbox", "workspace", "list"); got.code != exit.Usage || !strings.Contains(got.stderr, "--region") {
		t.Errorf("without a region: exit code %d: %s", got.code, got.stderr)
	}
}

// withoutAccount takes the account from the environment until the test ends.
func withoutAccount(t *testing.T) {
	t.Helper()
	t.Setenv("SIGNALBOX_ACCOUNT", "") // so that it is set again afterwards
	if err := os.Unsetenv("SIGNALBOX_ACCOUNT"); err != nil {
		t.Fatal(err)
	}
}

// With a production stack in the environment, the edition is still the edition,
// and what is not clear reaches neither.
func TestAFlagWinsOverTheEnvironment(t *testing.T) {
	d := newFixture(t)
	calls := controlPlane(t, d)
	t.Setenv("SIGNALBOX_STACK", "signalbox")
	for _, args := range [][]string{
		{"--local", d.dir, "--stack", "signalbox"}, {"--stack", "signalbox", "--local", d.dir},
		{"--local", ""}, {"--stack", ""}, {"--local", d.dir, "--region", "us-east-1"},
	} {
		if got := on(t, append(args, "workspace", "create", "w")...); got.code != exit.Usage || got.stdout != "" {
			t.Errorf("%q: exit code %d: %s", args, got.code, got.stderr)
		}
	}
	made := on(t, "--local", d.dir, "workspace", "create", "w")
	if want := "target: the local edition (" + d.dir + ")\n"; made.code != exit.Done || !strings.HasPrefix(made.stderr, want) {
		t.Errorf("exit code %d: %s", made.code, made.stderr)
	}
	if listed := on(t, "--local", d.dir, "workspace", "list"); listed.code != exit.Done || listed.stderr != "" || strings.Count(listed.stdout, "\n") != 3 {
		t.Errorf("a list names its target, or there are not two workspaces:\n%s%s", listed.stderr, listed.stdout)
	}
	withoutAccount(t)
	if got := on(t, "workspace", "list"); got.code != exit.Usage || !strings.Contains(got.stderr, "--account") {
		t.Errorf("a stack without an account: exit code %d: %s", got.code, got.stderr)
	}
	if n := calls(); n != 0 {
		t.Errorf("the stack was asked %d times", n)
	}
}

func TestAStackThatCannotBeReachedIsNotTheEdition(t *testing.T) {
	d := newFixture(t)
	controlPlane(t, d)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, service := range []string{"DYNAMODB", "CLOUDFORMATION"} {
		t.Setenv("AWS_ENDPOINT_URL_"+service, gone.URL)
		got := on(t, "--stack", "signalbox", "workspace", "list")
		if got.code != exit.Uncertain || strings.Contains(got.stderr, "local") || !strings.Contains(got.stderr, "could not be reached") {
			t.Errorf("%s: exit code %d: %s", service, got.code, got.stderr)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	if got := on(t, "--stack", "signalbox", "workspace", "list"); got.code != exit.Uncertain || !strings.Contains(got.stderr, "no AWS credentials") {
		t.Errorf("without credentials: exit code %d: %s", got.code, got.stderr)
	}
}

func TestTheEditionHasADefaultAccount(t *testing.T) {
	d := newFixture(t)
	other := newFixture(t)
	withoutAccount(t)
	write := func(facts string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(d.dir, "demo.json"), []byte(facts), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, facts := range []string{"", "{", "{}", `{"account_id":"acme"}`} {
		if facts != "" {
			write(facts)
		}
		if got := d.want(exit.Usage, "workspace", "list"); !strings.Contains(got.stderr, "--account") {
			t.Errorf("with %q: %s", facts, got.stderr)
		}
	}
	write(`{"account_id":"` + string(d.account) + `"}`)
	made := d.want(exit.Done, "workspace", "create", "w")
	if !strings.Contains(made.stderr, "its demo account\n") || !strings.Contains(d.must("workspace", "list"), strings.TrimSpace(made.stdout)) {
		t.Errorf("made %s%s", made.stderr, made.stdout)
	}
	t.Setenv("SIGNALBOX_ACCOUNT", string(other.account))
	if listed := d.must("workspace", "list"); !strings.Contains(listed, string(other.workspace)) {
		t.Errorf("the environment's account has\n%s", listed)
	}
	if listed := d.must("workspace", "list", "--account", string(d.account)); !strings.Contains(listed, string(d.workspace)) {
		t.Errorf("the flag's account has\n%s", listed)
	}
	if got := d.want(exit.NotFound, "workspace", "list", "--account", "00000000-0000-0000-0000-000000000000"); !strings.Contains(got.stderr, d.dir) {
		t.Errorf("an unknown account: %s", got.stderr)
	}
}

func TestMakeAdminMeansTheEdition(t *testing.T) {
	dry := exec.Command("make", "--no-print-directory", "-n", "-C", "../..", "admin", "ARGS=key list")
	printed, err := dry.CombinedOutput()
	if err != nil || !strings.Contains(string(printed), "admin --local .local key list") {
		t.Errorf("%v: %s", err, printed)
	}
}
