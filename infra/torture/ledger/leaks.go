package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"signalbox.dev/infra/contract/leakscan"
)

// demoFile is where the edition writes the keys of its demo account, which are no
// secrets of a torture.
const demoFile = "demo.json"

// Leaks searches all that a service leaves in its state folder, logs and the
// files of engines included, for what was secret. The service must have ended.
func Leaks(state string) ([]string, error) {
	root, err := os.OpenRoot(state)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // it was only read
	if err := root.Remove(demoFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("setting the demo account aside: %w", err)
	}
	return leakscan.Search(root.FS(), Marker)
}
