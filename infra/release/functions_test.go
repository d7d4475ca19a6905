package release_test

import (
	"debug/buildinfo"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// others are modules that a function may link beside those of AWS's services: AWS's runtime,
// the SDK's own parts, and JSON.
var others = regexp.MustCompile(`^github\.com/(aws/(aws-lambda-go|smithy-go|aws-sdk-go-v2(/(aws|config|credentials|feature|internal|service/internal)(/.*)?)?)|go-json-experiment/json)$`)

// services are those that each function links: its tables, and what the SDK signs in with.
const services = "dynamodb dynamodbstreams signin sso ssooidc sts"

// A function links the services that its operation needs.
func TestFunctions(t *testing.T) {
	for function, also := range map[string]string{"GetSyncJobFunction": "", "CreateByokKeyFunction": "kms", "DeleteFileFunction": "s3"} {
		info, err := buildinfo.ReadFile(filepath.Join("../../.build/functions", function, "bootstrap"))
		if err != nil {
			t.Fatalf("%v; run `make build` first", err)
		}
		var got []string
		for _, module := range info.Deps {
			if !others.MatchString(module.Path) {
				got = append(got, strings.TrimPrefix(module.Path, "github.com/aws/aws-sdk-go-v2/service/"))
			}
		}
		if want := slices.Sorted(slices.Values(strings.Fields(services + " " + also))); !slices.Equal(got, want) {
			t.Errorf("%s links %q, want %q", function, got, want)
		}
	}
}
