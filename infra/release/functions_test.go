package release_test

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every function links these modules. go.mod lists more: what a function links is only what
// it imports.
const linked = `
github.com/aws/aws-lambda-go
github.com/aws/aws-sdk-go-v2
github.com/aws/aws-sdk-go-v2/config
github.com/aws/aws-sdk-go-v2/credentials
github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue
github.com/aws/aws-sdk-go-v2/feature/ec2/imds
github.com/aws/aws-sdk-go-v2/internal/configsources
github.com/aws/aws-sdk-go-v2/internal/endpoints/v2
github.com/aws/aws-sdk-go-v2/internal/v4a
github.com/aws/aws-sdk-go-v2/service/dynamodb
github.com/aws/aws-sdk-go-v2/service/dynamodbstreams
github.com/aws/aws-sdk-go-v2/service/internal/accept-encoding
github.com/aws/aws-sdk-go-v2/service/internal/endpoint-discovery
github.com/aws/aws-sdk-go-v2/service/internal/presigned-url
github.com/aws/aws-sdk-go-v2/service/signin
github.com/aws/aws-sdk-go-v2/service/sso
github.com/aws/aws-sdk-go-v2/service/ssooidc
github.com/aws/aws-sdk-go-v2/service/sts
github.com/aws/smithy-go
github.com/go-json-experiment/json
`

const (
	kms = "github.com/aws/aws-sdk-go-v2/service/kms"
	s3  = "github.com/aws/aws-sdk-go-v2/service/s3 github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream " +
		"github.com/aws/aws-sdk-go-v2/service/internal/checksum github.com/aws/aws-sdk-go-v2/service/internal/s3shared"
)

// A function links the modules that its operation needs, and its size stays within a tenth
// of the size given here: a change beyond that is meant.
func TestFunctions(t *testing.T) {
	for _, function := range []struct {
		id, also string
		size     int64 // in bytes, on linux/amd64
	}{
		{"GetSyncJobFunction", "", 9_450_000},
		{"CreateByokKeyFunction", kms, 10_280_000},
		{"DeleteFileFunction", s3, 10_850_000},
	} {
		t.Run(function.id, func(t *testing.T) {
			binary := filepath.Join("../../.build/functions", function.id, "bootstrap")
			info, err := buildinfo.ReadFile(binary)
			if err != nil {
				t.Fatalf("%v; run `make build` first", err)
			}
			var got []string
			for _, module := range info.Deps {
				got = append(got, module.Path)
			}
			want := strings.Fields(linked + function.also)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("other modules are linked (-want +got):\n%s", diff)
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
