package engines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"signalbox.dev/infra/local/state"
)

// ExtendDB is the DynamoDB engine of the single-machine edition.
const ExtendDB = "extenddb"

// tried is the platform of the package that package.json pins.
const tried = "linux-x64"

func extendDB(c Config) (program, error) {
	binary, err := installed(c.Root)
	dir := filepath.Join(c.Dir, ExtendDB)
	return program{name: ExtendDB, dir: dir, check: func() error { return checkDatabase(dir) }, command: func(ctx context.Context, port string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, binary, "serve", "--foreground", "-p", port) //nolint:gosec // the pinned engine
		cmd.Env = []string{"EXTENDDB__SERVER__BIND_ADDR=" + host, "NO_COLOR=1"}
		cmd.Dir = dir // ExtendDB keeps its database here
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

// magic is the first text of every SQLite file ("Database File Format").
const magic = "SQLite format 3\x00"

// checkDatabase checks that the file is a database: ExtendDB tries for ever to open any other file.
func checkDatabase(dir string) error {
	path := filepath.Join(dir, ExtendDB+".sqlite")
	text, err := readStart(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && (text == "" || text == magic) {
		return nil // provision notices if it held tables
	}
	return &state.Damage{Err: cmp.Or(err, fmt.Errorf("%s is not a database", path))}
}

// readStart returns the first bytes of a file, or all of a shorter one.
func readStart(path string) (string, error) {
	file, err := os.Open(path) //nolint:gosec // the engine's database
	if err != nil {
		return "", err
	}
	start, err := io.ReadAll(io.LimitReader(file, int64(len(magic))))
	return string(start), errors.Join(err, file.Close())
}
