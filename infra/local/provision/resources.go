package provision

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// memoryFile maps the logical ids of all that was made to ARNs.
const memoryFile = "resources.json"

// errGone is the error of what was made and is not there.
var errGone = errors.New("it is gone")

func recall(dir string) (map[string]string, error) {
	made, path := make(map[string]string), filepath.Join(dir, memoryFile)
	text, err := os.ReadFile(path) //nolint:gosec // a file of the state folder
	if errors.Is(err, fs.ErrNotExist) {
		return made, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &made)
	}
	if err == nil && len(made) == 0 {
		err = errors.New("it names nothing")
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return made, nil
}

// remember writes the file where something is new.
func (p *provisioner) remember(dir string) error {
	all := maps.Clone(p.remembered)
	for id, attributes := range p.made {
		all[id] = attributes["Arn"]
	}
	if maps.Equal(all, p.remembered) {
		return nil
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(dir, memoryFile), append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("remembering what was made: %w", err)
	}
	return nil
}
