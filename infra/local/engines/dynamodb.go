package engines

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ExtendDB is the DynamoDB engine of the single-machine edition.
const ExtendDB = "extenddb"

// tried is the platform whose package is pinned in package.json.
const tried = "linux-x64"

func extendDB(c Config) (program, error) {
	binary, err := installed(c.Root)
	dir := filepath.Join(c.Dir, ExtendDB)
	return program{name: ExtendDB, dir: dir, check: func() error { return checkLog(dir) }, command: func(port string) *exec.Cmd {
		cmd := exec.Command(binary, "serve", "--foreground", "-p", port) //nolint:gosec // the pinned engine
		cmd.Env = []string{"EXTENDDB__SERVER__BIND_ADDR=" + c.Host, "EXTENDDB_DEV_ALLOW_ANY_BIND=1", "NO_COLOR=1"}
		cmd.Dir = dir // where it keeps its database
		return cmd
	}}, err
}

// installed finds ExtendDB in the npm package for this platform.
func installed(root string) (string, error) {
	modules := filepath.Join(root, "infra", "local", "node_modules")
	binary, err := filepath.Abs(filepath.Join(modules, "@"+ExtendDB, platform(), ExtendDB))
	if err != nil {
		return "", err
	}
	_, err = os.Stat(binary)
	if errors.Is(err, os.ErrNotExist) && platform() != tried {
		return "", fmt.Errorf("there is no DynamoDB engine for %s: only %s was tried", platform(), tried)
	}
	if err != nil {
		return "", fmt.Errorf("the DynamoDB engine is missing; install it: make engines (%w)", err)
	}
	return binary, nil
}

// checkLog checks that the database has its write-ahead log, without which SQLite
// opens it as it was before. An ExtendDB that closes its last connection before it
// ends removes the log, and the log's index with it.
func checkLog(dir string) error {
	_, err := os.Stat(filepath.Join(dir, ExtendDB+".sqlite"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	log, err := os.ReadFile(filepath.Join(dir, ExtendDB+".sqlite-wal")) //nolint:gosec // the engine's own
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, ExtendDB+".sqlite-shm")); errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("the database of %s lacks what was written last: %w", ExtendDB, err)
	}
	// "Write-Ahead Log File Format" of SQLite: its magic number, in either byte order
	// of the checksums.
	if len(log) < 4 || binary.BigEndian.Uint32(log)&^1 != 0x377f0682 {
		return fmt.Errorf("the database of %s lacks what was written last: %s-wal is no log", ExtendDB, filepath.Join(dir, ExtendDB+".sqlite"))
	}
	return nil
}
