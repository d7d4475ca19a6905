package release_test

import (
	"context"
	"debug/buildinfo"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// others are modules that a function may link beside those of AWS's services: AWS's runtime,
// the SDK's own parts, and JSON.
var others = regexp.MustCompile(`^github\.com/(aws/(aws-lambda-go|smithy-go|aws-sdk-go-v2(/(aws|feature|internal|service/internal)(/.*)?)?)|go-json-experiment/json)$`)

// A function links the services that its operation needs, and streams with the decoder of
// rows. Its cold start opens a connection to each.
func TestFunctions(t *testing.T) {
	for function, services := range map[string][]string{"GetSyncJobFunction": {"dynamodb"}, "CreateByokKeyFunction": {"dynamodb", "kms"}, "DeleteFileFunction": {"dynamodb", "s3"}} {
		program := filepath.Join("../../.build/functions", function, "bootstrap")
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			t.Fatalf("%v; run `make build` first", err)
		}
		var linked []string
		for _, module := range info.Deps {
			if !others.MatchString(module.Path) {
				linked = append(linked, strings.TrimPrefix(module.Path, "github.com/aws/aws-sdk-go-v2/service/"))
			}
		}
		if want := slices.Insert(slices.Clone(services), 1, "dynamodbstreams"); !slices.Equal(linked, want) {
			t.Errorf("%s links %q, want %q", function, linked, want)
		}

		requests := make(chan string, 10)
		ctx, started := context.WithCancel(t.Context())
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/2018-06-01/") { // the function asks Lambda for a request
				started()
				return
			}
			requests <- r.Host + r.URL.Path + r.Header.Get("Authorization")
		}))
		start := exec.CommandContext(ctx, program) //nolint:gosec // ours
		start.Env = []string{
			"AWS_LAMBDA_RUNTIME_API=" + server.Listener.Addr().String(), "HTTP_PROXY=" + server.URL, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret",
			"AWS_ENDPOINT_URL_DYNAMODB=http://dynamodb.test", "AWS_ENDPOINT_URL_KMS=http://kms.test", "AWS_ENDPOINT_URL_S3=http://s3.test",
			"ACCESS_TABLE=a", "CREDENTIALS_TABLE=b", "CONTROL_TABLE=c", "SYNC_JOBS_TABLE=d", "FILES_BUCKET=files", "SEALING_KEY_ARN=e",
		}
		out, _ := start.CombinedOutput() // until it is killed
		started()
		server.Close()
		close(requests)
		var opened []string
		for request := range requests {
			opened = append(opened, request)
		}
		slices.Sort(opened)
		var want []string
		for _, service := range services {
			want = append(want, strings.Replace(service, "s3", "files.s3", 1)+".test/")
		}
		if !slices.Equal(opened, want) {
			t.Errorf("the cold start of %s connects to %q, want %q\n%s", function, opened, want, out)
		}
	}
}
