package contract_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// token is what every API key looks like.
var token = regexp.MustCompile(`sbx_[A-Za-z0-9_-]{43}`)

// leaks searches every file for the marker in any form it may have been written
// in, and for API keys, and says where it found one.
func leaks(files fs.FS) ([]string, error) {
	forms := forms(marker)
	var found []string
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return fmt.Errorf("searching %s: %w", path, err)
		}
		for name, form := range forms {
			if bytes.Contains(content, []byte(form)) {
				found = append(found, path+" holds the marker "+name)
			}
		}
		if token.Match(content) {
			found = append(found, path+" holds an API key")
		}
		return nil
	})
	return found, err
}

// forms are the ways in which a text may stand in a file.
func forms(text string) map[string]string {
	all := map[string]string{
		"as it is":       text,
		"in hex":         hex.EncodeToString([]byte(text)),
		"in upper hex":   strings.ToUpper(hex.EncodeToString([]byte(text))),
		"two bytes each": strings.Join(strings.Split(text, ""), "\x00"),
	}
	// In base64 a text looks different by where in a group of three it begins;
	// the first and last characters of each form depend on its neighbours.
	for offset := range 3 {
		padded := strings.Repeat("\x00", offset) + text
		whole := padded[:len(padded)/3*3]
		all[fmt.Sprintf("in base64, shifted by %d", offset)] = base64.StdEncoding.EncodeToString([]byte(whole))[4*min(offset, 1):]
	}
	return all
}

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
		found, err := leaks(fstest.MapFS{"a/b/c": {Data: []byte(content)}})
		if err != nil || len(found) == 0 {
			t.Errorf("%s: found nothing, %v", name, err)
		}
	}
	found, err := leaks(fstest.MapFS{"a/b/c": {Data: []byte("sbx_short " + marker[1:])}})
	if err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
}
