package engines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"signalbox.dev/infra/local/state"
)

// ExtendDB is the DynamoDB engine of the local server.
const ExtendDB = "extenddb"

// The indexes of services.
const (
	dynamoDB = iota
	objects
	keys
)

var services = [...]struct {
	variable string // names an engine of infra/test/second-opinion, for tests
	// own is the engine of the local server. Nil means that it runs in this
	// process.
	own func(Config) (program, error)
}{
	dynamoDB: {"SIGNALBOX_DYNAMODB", extendDB},
	objects:  {"SIGNALBOX_S3", versityGW},
	keys:     {"SIGNALBOX_KMS", nil},
}

// programs returns the programs to run. It is nil for an engine in this process, and for
// one that runs already.
func (c Config) programs() (all [len(services)]*program, err error) {
	for i, s := range services {
		var p program
		name := os.Getenv(s.variable)
		switch {
		case i == dynamoDB && c.DynamoDB != "":
			continue
		case name != "":
			p, err = secondOpinion(c, name)
		case s.own == nil:
			continue
		default:
			p, err = s.own(c)
		}
		if err != nil {
			return all, err
		}
		all[i] = &p
	}
	return all, nil
}

func extendDB(c Config) (program, error) {
	platform := runtime.GOOS + "-" + strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	binary, err := installed("DynamoDB", filepath.Join(c.Root, "infra", "local", "node_modules", "@"+ExtendDB, platform, ExtendDB))
	if err != nil {
		err = fmt.Errorf("%w. If there is none for %s, that says what works", err, platform)
	}
	dir := filepath.Join(c.Dir, ExtendDB)
	return program{name: ExtendDB, dir: dir, check: func() error { return checkDatabase(dir) }, command: func(ctx context.Context, port string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, binary, "serve", "--foreground", "-p", port) //nolint:gosec // the pinned engine
		cmd.Env = []string{"EXTENDDB__SERVER__BIND_ADDR=" + host, "NO_COLOR=1"}
		cmd.Dir = dir // ExtendDB keeps its database here
		return cmd
	}}, err
}

// magic is the first text of every SQLite file ("Database File Format").
const magic = "SQLite format 3\x00"

// checkDatabase checks that the file is a database: ExtendDB tries for ever to open any
// other file. A missing or empty file is none of its faults: provision notices if it held
// tables.
func checkDatabase(dir string) error {
	path := filepath.Join(dir, ExtendDB+".sqlite")
	file, err := os.Open(path) //nolint:gosec // the engine's database
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	start, err := io.ReadAll(io.LimitReader(file, int64(len(magic))))
	if err == nil && len(start) > 0 && string(start) != magic {
		err = &state.Damage{Err: fmt.Errorf("%s is not a database", path)}
	}
	return errors.Join(err, file.Close())
}

func versityGW(c Config) (program, error) {
	binary, err := installed("S3", filepath.Join(c.Root, ".build", "objects"))
	dir := filepath.Join(c.Dir, "objects")
	return program{name: "objects", dir: dir, health: "/health", command: func(ctx context.Context, port string) *exec.Cmd {
		address := net.JoinHostPort(host, port)
		cmd := exec.CommandContext(ctx, binary, "-addr", address, "-dir", dir, "-access-key", accessKeyID, "-secret-key", secretAccessKey) //nolint:gosec // a binary of ours
		cmd.Env = []string{}
		return cmd
	}}, err
}

// secondOpinion is an engine from infra/test/second-opinion.
func secondOpinion(c Config, name string) (program, error) {
	script, err := installed(name, filepath.Join(c.Root, "infra", "test", "second-opinion", "engine"))
	dir := filepath.Join(c.Dir, name)
	return program{name: name, dir: dir, command: func(ctx context.Context, port string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, script, name, dir, host, port) //nolint:gosec // a script of ours
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		return cmd
	}}, err
}

// installed returns the absolute path of an engine's program.
func installed(service, path string) (string, error) {
	binary, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(binary)
	}
	if err != nil {
		return "", fmt.Errorf("the %s engine is missing; install it: make build (%w)", service, err)
	}
	return binary, nil
}
