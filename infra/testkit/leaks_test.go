package testkit_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
	"testing/fstest"

	"signalbox.dev/infra/testkit"
)

func TestSearchFindsEveryForm(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"plain":       "x" + testkit.Marker + "x",
		"hex":         "x" + hex.EncodeToString([]byte(testkit.Marker)),
		"base64":      base64.StdEncoding.EncodeToString([]byte(testkit.Marker + "xyz")),
		"base64 at 1": base64.StdEncoding.EncodeToString([]byte("a" + testkit.Marker + "xyz")),
		"base64 at 2": base64.URLEncoding.EncodeToString([]byte("ab" + testkit.Marker + "xyz")),
		"base64 at 3": base64.RawStdEncoding.EncodeToString([]byte("abc" + testkit.Marker)),
		"token":       `{"key":"sbx_` + strings.Repeat("a", 43) + `"}`,
		"":            "sbx_short " + testkit.Marker[1:],
	} {
		found, err := testkit.Search(fstest.MapFS{"a/b/c": {Data: []byte(content)}}, testkit.Marker)
		if err != nil || (len(found) > 0) != (name != "") {
			t.Errorf("%q: found %v, %v", name, found, err)
		}
	}
}
