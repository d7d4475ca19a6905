package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// controlPlane stands in for CloudFormation and STS, which have no local engine. It has
// one stack, signalbox, and returns the environment that reaches it.
func controlPlane(t *testing.T, d *fixture) []string {
	t.Helper()
	known := d.outputs()
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
	return []string{
		"AWS_ACCESS_KEY_ID=" + credentials.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + credentials.SecretAccessKey,
		"AWS_REGION=us-east-1", "AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
		"AWS_ENDPOINT_URL_CLOUDFORMATION=" + server.URL, "AWS_ENDPOINT_URL_STS=" + server.URL,
		"AWS_ENDPOINT_URL_DYNAMODB=" + d.endpoint("DynamoDB"), "AWS_ENDPOINT_URL_S3=" + d.endpoint("S3"),
	}
}

// on executes a command line unchanged.
func on(t *testing.T, args ...string) answer {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
	return answer{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

func TestMakeAdminMeansTheEdition(t *testing.T) {
	dry := exec.Command("make", "--no-print-directory", "-n", "-C", "../..", "admin", "ARGS=key list")
	printed, err := dry.CombinedOutput()
	if err != nil || !strings.Contains(string(printed), "admin --local .local key list") {
		t.Errorf("%v: %s", err, printed)
	}
}
