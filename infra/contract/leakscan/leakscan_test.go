package leakscan_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
	"testing/fstest"

	"signalbox.dev/infra/contract/leakscan"
)

const marker = "zQ7-marker-mX4w"

// TestLeaksAreFound: the search that finds nothing in the end can find.
func TestLeaksAreFound(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"plain":       "x" + marker + "x",
		"hex":         "x" + hex.EncodeToString([]byte(marker)),
		"base64":      base64.StdEncoding.EncodeToString([]byte(marker + "xyz")),
		"base64 at 1": base64.StdEncoding.EncodeToString([]byte("a" + marker + "xyz")),
		"base64 at 2": base64.URLEncoding.EncodeToString([]byte("ab" + marker + "xyz")),
		"base64 at 3": base64.RawStdEncoding.EncodeToString([]byte("abc" + marker)),
		"token":       `{"key":"sbx_` + strings.Repeat("a", 43) + `"}`,
	} {
		found, err := leakscan.Search(fstest.MapFS{"a/b/c": {Data: []byte(content)}}, marker)
		if err != nil || len(found) == 0 {
			t.Errorf("%s: found nothing, %v", name, err)
		}
	}
	found, err := leakscan.Search(fstest.MapFS{"a/b/c": {Data: []byte("sbx_short " + marker[1:])}}, marker)
	if err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
}
