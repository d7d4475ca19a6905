package testkit

import (
	"os"
	"os/exec"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Tests reach their engines, and nothing else, whatever AWS variables the shell has.
func TestTheEnginesAreReachedWhateverTheShellHas(t *testing.T) {
	if os.Getenv("AWS_PROFILE") != "hostile" {
		again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // this very test
		again.Env = append(os.Environ(), Hostile(t)...)
		if output, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, output)
		}
		return
	}
	engines := Start(t)
	engines.Bucket(t, types.BucketVersioningStatusEnabled)
	engines.Key(t)
}
