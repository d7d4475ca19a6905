package contract_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"signalbox.dev/infra/local/record"
)

// calls collects what the functions ask of AWS while the suite runs, each shape
// of call once. infra/lint/iam judges the policies by it.
type calls struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (c *calls) note(call record.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[call.String()] = true
}

// write writes a line for each shape.
func (c *calls) write(file string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil { //nolint:gosec // the path is the developer's own
		return fmt.Errorf("making the folder of recorded calls: %w", err)
	}
	text := strings.Join(slices.Sorted(maps.Keys(c.seen)), "\n") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil { //nolint:gosec // see above
		return fmt.Errorf("writing the recorded calls: %w", err)
	}
	return nil
}
