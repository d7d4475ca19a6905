package engines

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"signalbox.dev/infra/local/damage"
)

// ExtendDB is the DynamoDB engine of the single-machine edition.
const ExtendDB = "extenddb"

// tried is the platform of the package that package.json pins.
const tried = "linux-x64"

func extendDB(c Config) (program, error) {
	binary, err := installed(c.Root)
	dir := filepath.Join(c.Dir, ExtendDB)
	return program{name: ExtendDB, dir: dir, check: func() error { return checkDatabase(dir) }, command: func(port string) *exec.Cmd {
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

// The first bytes of SQLite's files ("Database File Format" and "Write-Ahead Log File
// Format"). The last bit of a log's is the byte order of its checksums.
const (
	databaseMagic = "SQLite format 3\x00"
	logMagic      = 0x377f0682
)

// checkDatabase checks that the database is one and has its write-ahead log. Without
// the log SQLite opens the database as it was before. An ExtendDB that closes its last
// connection before it ends removes the log, and the log's index with it. The next one
// makes a log of 0 bytes, which stays empty until the first write.
func checkDatabase(dir string) error {
	path := filepath.Join(dir, ExtendDB+".sqlite")
	database, err := readStart(path, len(databaseMagic))
	if errors.Is(err, os.ErrNotExist) || err == nil && len(database) == 0 {
		return nil // provision notices if it held tables
	}
	if err == nil && string(database) != databaseMagic {
		err = fmt.Errorf("%s is no database", path)
	}
	if err != nil {
		return &damage.Error{Err: fmt.Errorf("the database of %s: %w", ExtendDB, err)}
	}
	log, err := readStart(path+"-wal", 4)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(path + "-shm"); errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	if err == nil && len(log) != 0 && (len(log) < 4 || binary.BigEndian.Uint32(log)&^1 != logMagic) {
		err = fmt.Errorf("%s-wal is no log", path)
	}
	if err != nil {
		return &damage.Error{Err: fmt.Errorf("the database of %s lacks what was written last: %w", ExtendDB, err)}
	}
	return nil
}

// readStart returns the first bytes of a file, or all of a shorter one.
func readStart(path string, length int) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // the engine's own
	if err != nil {
		return nil, err
	}
	start := make([]byte, length)
	n, err := io.ReadFull(file, start)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return start[:n], errors.Join(err, file.Close())
}
