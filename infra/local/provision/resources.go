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

	"signalbox.dev/infra/local/damage"
)

// ResourcesFile maps the logical ids of all resources made to ARNs.
const ResourcesFile = "resources.json"

// errGone is the error of a resource that was made and does not exist.
var errGone = &damage.Error{Err: errors.New("it is gone")}

// readResources returns the logical ids and ARNs that earlier calls recorded.
func readResources(dir string) (map[string]string, error) {
	made, path := make(map[string]string), filepath.Join(dir, ResourcesFile)
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
		return nil, &damage.Error{Err: fmt.Errorf("reading %s: %w", path, err)}
	}
	return made, nil
}

// writeResources writes the file if a resource is new.
func (p *provisioner) writeResources(dir string) error {
	all := maps.Clone(p.existing)
	for id, attributes := range p.made {
		all[id] = attributes["Arn"]
	}
	if maps.Equal(all, p.existing) {
		return nil
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(dir, ResourcesFile), append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("recording what was made: %w", err)
	}
	return nil
}
