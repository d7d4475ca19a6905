package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestHelpIsNoError(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"key", "--help"}, {"key", "create", "-h"}} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, nil, &stdout, &stderr); code != exitDone || stderr.Len() > 0 || !strings.Contains(stdout.String(), "Usage:") {
			t.Errorf("%v: exit code %d\n%s%s", args, code, &stdout, &stderr)
		}
	}
}

func TestNonsenseIsOneSentence(t *testing.T) {
	for _, args := range [][]string{{}, {"key"}, {"key", "lend"}, {"job", "create", "--account", "acme"}, {"--nonsense"}} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), args, nil, &stdout, &stderr)
		if code != exitUsage || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%v: exit code %d\n%s%s", args, code, &stdout, &stderr)
		}
	}
}

// What the SDK by itself gives up at, the command makes again; a condition stays.
func TestRetries(t *testing.T) {
	cancelled := func(codes ...string) error {
		e := &types.TransactionCanceledException{}
		for _, code := range codes {
			e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{Code: &code})
		}
		return e
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{cancelled("None", "ThrottlingError"), true},
		{cancelled("TransactionConflict", "RequestLimitExceeded"), true},
		{cancelled("ConditionalCheckFailed", "ProvisionedThroughputExceeded"), false},
		{&types.TransactionConflictException{}, true},
		{&types.ConditionalCheckFailedException{}, false},
	} {
		if got := retryer().IsErrorRetryable(c.err); got != c.want {
			t.Errorf("%v: retried %v, want %v", c.err, got, c.want)
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
				if err := os.WriteFile(filepath.Join(dir, stackFile), []byte(c.written), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), []string{"--local", dir, "account", "create", "Acme"}, nil, &stdout, &stderr)
			if code != exitOther || !strings.Contains(stderr.String(), c.want) {
				t.Errorf("exit code %d: %s", code, &stderr)
			}
		})
	}
}

// controlPlane stands in for CloudFormation and STS, of which there is no local
// engine: it knows one stack.
func controlPlane(t *testing.T, known outputs) *httptest.Server {
	t.Helper()
	member := func(name, value string) string {
		return fmt.Sprintf("<member><OutputKey>%s</OutputKey><OutputValue>%s</OutputValue></member>", name, value)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		switch {
		case r.FormValue("Action") == "GetCallerIdentity":
			_, _ = fmt.Fprint(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>`+
				`<Arn>arn:aws:iam::123456789012:user/operator</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>`)
		case r.FormValue("StackName") == "signalbox":
			_, _ = fmt.Fprint(w, `<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><DescribeStacksResult><Stacks><member>`+
				`<StackName>signalbox</StackName><StackStatus>CREATE_COMPLETE</StackStatus><CreationTime>2026-01-01T00:00:00Z</CreationTime><Outputs>`+
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
	return server
}

func TestADeployedStackIsFoundByItsName(t *testing.T) {
	d := newDesk(t)
	plane := controlPlane(t, d.outputs())
	credentials, err := d.engines.Config.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": credentials.AccessKeyID, "AWS_SECRET_ACCESS_KEY": credentials.SecretAccessKey,
		"AWS_REGION": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_ENDPOINT_URL_CLOUDFORMATION": plane.URL, "AWS_ENDPOINT_URL_STS": plane.URL,
		"AWS_ENDPOINT_URL_DYNAMODB": d.endpoint("DynamoDB"), "AWS_ENDPOINT_URL_S3": d.endpoint("S3"),
	} {
		t.Setenv(name, value)
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"--stack", "signalbox", "--region", "us-east-1", "workspace", "create", "cloud"}, nil, &stdout, &stderr)
	if code != exitDone || !strings.Contains(stderr.String(), `"aws_identity":"arn:aws:iam::123456789012:user/operator"`) {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if listed := d.must("workspace", "list"); !strings.Contains(listed, strings.TrimSpace(stdout.String())) {
		t.Errorf("made %s, listed:\n%s", &stdout, listed)
	}
	stderr.Reset()
	code = run(t.Context(), []string{"--stack", "nobody", "--region", "us-east-1", "workspace", "list"}, nil, &stdout, &stderr)
	if code != exitOther || !strings.Contains(stderr.String(), "ValidationError") {
		t.Errorf("unknown stack: exit code %d: %s", code, &stderr)
	}
}
