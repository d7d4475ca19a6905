package engines

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"signalbox.dev/infra/local/state"
)

// engine is one of the services, as a process.
type engine struct {
	name string
	// isExtendDB is set if it needs the proxy of front.go.
	isExtendDB bool
	// dir is its working directory; its output goes to a file there.
	dir string
	// health is a path that it answers, with any status, once it is ready.
	health string
	// program listens on the port that is added to its last argument.
	program     string
	arguments   []string
	environment []string
}

// ConfigError means that nothing was started because an engine is not there.
type ConfigError struct{ error }

// dynamoDB returns ExtendDB. If it is not installed, Dynoxide serves a new folder: npm does not have
// ExtendDB for each platform. A used folder keeps its engine.
func (c Config) dynamoDB() (engine, error) {
	if name := os.Getenv("SIGNALBOX_DYNAMODB"); name != "" {
		return c.foreign(name)
	}
	chosen, err := c.extendDB()
	if c.holds(extendDB) {
		return chosen, err
	}
	if c.holds(dynoxide) {
		if chosen, err = c.dynoxide(); err != nil {
			err = ConfigError{fmt.Errorf("the tables in %s are Dynoxide's: %w", c.Dir, err)}
		}
		return chosen, err
	}
	if _, isMissing := errors.AsType[ConfigError](err); isMissing {
		if other, noOther := c.dynoxide(); noOther == nil {
			return other, nil
		}
	}
	return chosen, err
}

// holds reports whether the state is the engine's.
func (c Config) holds(name string) bool {
	_, err := os.Stat(filepath.Join(c.Dir, name))
	return err == nil
}

// dynoxide returns the user's own program of that name.
func (c Config) dynoxide() (engine, error) {
	program, err := exec.LookPath(dynoxide)
	return engine{
		name: dynoxide, dir: filepath.Join(c.Dir, dynoxide),
		program: program, arguments: []string{"--host", host, "--db-path", "dynoxide.sqlite", "--port", ""},
	}, err
}

func (c Config) s3() (engine, error) {
	if name := os.Getenv("SIGNALBOX_S3"); name != "" {
		return c.foreign(name)
	}
	return c.versityGW()
}

const extendDB, dynoxide = "extenddb", "dynoxide"

// extendDBProgram is where npm installs ExtendDB, if it has ExtendDB for this platform.
func (c Config) extendDBProgram() string {
	platform := runtime.GOOS + "-" + strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	return filepath.Join(c.Root, "infra", "local", "node_modules", "@"+extendDB, platform, extendDB)
}

func (c Config) extendDB() (engine, error) {
	binary, err := installed("DynamoDB", c.extendDBProgram())
	if err != nil {
		return engine{}, fmt.Errorf("%w. If there is none for this platform, that says what works", err)
	}
	dir := filepath.Join(c.Dir, extendDB)
	return engine{
		name: extendDB, dir: dir, isExtendDB: true,
		program: binary, arguments: []string{"serve", "--foreground", "-p", ""},
		environment: []string{"EXTENDDB__SERVER__BIND_ADDR=" + host, "NO_COLOR=1"},
	}, checkDatabase(dir)
}

// magic is the first text of every SQLite file ("Database File Format").
const magic = "SQLite format 3\x00"

// checkDatabase checks that the file is a database: ExtendDB tries for ever to open any
// other file. Provision notices a missing or empty file if it held tables.
func checkDatabase(dir string) error {
	path := filepath.Join(dir, extendDB+".sqlite")
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

func (c Config) versityGW() (engine, error) {
	binary, err := installed("S3", filepath.Join(c.Root, ".build", "objects"))
	return engine{
		name: "objects", dir: filepath.Join(c.Dir, "objects"), health: "/health",
		program: binary, arguments: []string{"-access-key", accessKeyID, "-secret-key", secretAccessKey, "-addr", host + ":"},
	}, err
}

// foreign is an engine that the program SIGNALBOX_ENGINE runs: NAME FOLDER HOST PORT.
func (c Config) foreign(name string) (engine, error) {
	program, err := installed(name, os.Getenv("SIGNALBOX_ENGINE"))
	dir := filepath.Join(c.Dir, name)
	return engine{
		name: name, dir: dir,
		program: program, arguments: []string{name, dir, host, ""}, environment: []string{"PATH=" + os.Getenv("PATH")},
	}, err
}

// installed returns the absolute path of an engine's program.
func installed(service, path string) (string, error) {
	binary, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(binary) //nolint:gosec // the caller's own program, or one of ours
	}
	if err != nil {
		return "", ConfigError{fmt.Errorf("the %s engine is missing; install it: make build (%w)", service, err)}
	}
	return binary, nil
}
