package kit

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"signalbox.dev/shared/auth"
)

// Marker is part of every secret that tests send. No response, log, error or stored
// item may contain it.
const Marker = "zQ7-marker-mX4w"

// Search searches every file with LeaksIn. It reports the file of each leak.
func Search(files fs.FS) ([]string, error) {
	var found []string
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return fmt.Errorf("searching %s: %w", path, err)
		}
		for _, leak := range LeaksIn(content) {
			found = append(found, path+" contains "+leak)
		}
		return nil
	})
	return found, err
}

// LeaksIn returns the forms of the marker that the content contains, and whether it
// contains API keys.
func LeaksIn(content []byte) []string {
	var found []string
	for name, form := range forms() {
		if bytes.Contains(content, []byte(form)) {
			found = append(found, "the marker "+name)
		}
	}
	if len(auth.TokensIn(string(content))) > 0 {
		found = append(found, "an API key")
	}
	return found
}

// forms returns the encodings of the marker that a file may contain.
var forms = sync.OnceValue(func() map[string]string {
	all := map[string]string{
		"as it is":       Marker,
		"in hex":         hex.EncodeToString([]byte(Marker)),
		"in upper hex":   strings.ToUpper(hex.EncodeToString([]byte(Marker))),
		"two bytes each": strings.Join(strings.Split(Marker, ""), "\x00"),
	}
	// The base64 form of a text depends on its offset in a group of three bytes;
	// its first and last characters depend on the neighbours.
	for offset := range 3 {
		padded := strings.Repeat("\x00", offset) + Marker
		whole := padded[:len(padded)/3*3]
		all[fmt.Sprintf("in base64, shifted by %d", offset)] = base64.StdEncoding.EncodeToString([]byte(whole))[4*min(offset, 1):]
	}
	return all
})
