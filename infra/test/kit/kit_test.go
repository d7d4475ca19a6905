package kit_test

import (
	"encoding/base64"
	"encoding/hex"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/infra/test/kit"
)

func TestSearchFindsEveryForm(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"plain":       "x" + kit.Marker + "x",
		"hex":         "x" + hex.EncodeToString([]byte(kit.Marker)),
		"base64":      base64.StdEncoding.EncodeToString([]byte(kit.Marker + "xyz")),
		"base64 at 1": base64.StdEncoding.EncodeToString([]byte("a" + kit.Marker + "xyz")),
		"base64 at 2": base64.URLEncoding.EncodeToString([]byte("ab" + kit.Marker + "xyz")),
		"base64 at 3": base64.RawStdEncoding.EncodeToString([]byte("abc" + kit.Marker)),
		"token":       `{"key":"sbx_` + strings.Repeat("a", 43) + `"}`,
		"":            "sbx_short " + kit.Marker[1:],
	} {
		found, err := kit.Search(fstest.MapFS{"a/b/c": {Data: []byte(content)}})
		if err != nil || (len(found) > 0) != (name != "") {
			t.Errorf("%q: found %v, %v", name, found, err)
		}
	}
}

// Tests reach only their engines, with any AWS variables in the shell.
func TestOnlyTheEnginesAreReachedWithAnyVariables(t *testing.T) {
	if os.Getenv("AWS_PROFILE") != "hostile" {
		again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // this very test
		again.Env = append(os.Environ(), kit.Hostile(t)...)
		if output, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, output)
		}
		return
	}
	engines := kit.Start(t)
	engines.Bucket(t, types.BucketVersioningStatusEnabled)
	engines.Key(t)
}
