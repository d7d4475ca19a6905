package release_test

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// others are modules that a function may link beside those of AWS's services: AWS's runtime,
// the SDK's own parts, and JSON.
var others = regexp.MustCompile(`^github\.com/(aws/(aws-lambda-go|smithy-go|aws-sdk-go-v2(/(aws|config|credentials|feature|internal|service/internal)(/.*)?)?)|go-json-experiment/json)$`)

// services are those that each function links: its tables, and what the SDK signs in with.
const services = "dynamodb dynamodbstreams signin sso ssooidc sts"

// A function links the services that its operation needs, and its size stays within a tenth
// of the size given here: a change beyond that is meant.
func TestFunctions(t *testing.T) {
	for _, function := range []struct {
		id, also string
		size     int64 // in bytes, on linux/amd64
	}{
		{"GetSyncJobFunction", "", 9_450_000},
		{"CreateByokKeyFunction", "kms", 10_280_000},
		{"DeleteFileFunction", "s3", 10_850_000},
	} {
		t.Run(function.id, func(t *testing.T) {
			binary := filepath.Join("../../.build/functions", function.id, "bootstrap")
			info, err := buildinfo.ReadFile(binary)
			if err != nil {
				t.Fatalf("%v; run `make build` first", err)
			}
			var got []string
			for _, module := range info.Deps {
				if !others.MatchString(module.Path) {
					got = append(got, strings.TrimPrefix(module.Path, "github.com/aws/aws-sdk-go-v2/service/"))
				}
			}
			want := strings.Fields(services + " " + function.also)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("linked are %q, want %q", got, want)
			}
			if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
				return
			}
			file, err := os.Stat(binary)
			if err != nil {
				t.Fatal(err)
			}
			if off := file.Size() - function.size; max(off, -off) > function.size/10 {
				t.Errorf("the binary has %d bytes, not %d within a tenth", file.Size(), function.size)
			}
		})
	}
}
