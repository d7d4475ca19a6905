// Package leakscan searches what a service leaves behind for what must not be in
// it.
package leakscan

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// token is what every API key looks like.
var token = regexp.MustCompile(`sbx_[A-Za-z0-9_-]{43}`)

// Search searches every file for the marker in any form it may have been written
// in, and for API keys, and says where it found one. The marker is text that
// stands in every secret and nowhere else.
func Search(files fs.FS, marker string) ([]string, error) {
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
