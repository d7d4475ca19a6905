package engines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// The DynamoDB engines, as SIGNALBOX_DYNAMODB names them.
const (
	ExtendDB = "extenddb"
	Dynoxide = "dynoxide"
)

// tried is the platform whose packages are pinned in package.json.
const tried = "linux-x64"

// startDynamoDB runs the DynamoDB engine.
func startDynamoDB(ctx context.Context, c Config) (*process, error) {
	binary, dir := c.binaries[0], filepath.Join(c.Dir, c.DynamoDB)
	return program{name: c.DynamoDB, dir: dir, port: c.ports[0], command: func(port string) *exec.Cmd {
		if c.DynamoDB == Dynoxide {
			cmd := exec.Command(binary, "--host", c.Host, "-p", port, "--db-path", filepath.Join(dir, "dynoxide.sqlite")) //nolint:gosec // the pinned engine
			cmd.Env = []string{}
			return cmd
		}
		cmd := exec.Command(binary, "serve", "--foreground", "-p", port) //nolint:gosec // the pinned engine
		cmd.Env = []string{"EXTENDDB__SERVER__BIND_ADDR=" + c.Host, "EXTENDDB_DEV_ALLOW_ANY_BIND=1", "NO_COLOR=1"}
		cmd.Dir = dir // where it keeps its database
		return cmd
	}}.start(ctx, c.Host)
}

// installed finds the engine's binary in the npm package for this platform.
func installed(root, engine string) (string, error) {
	if engine != ExtendDB && engine != Dynoxide {
		return "", fmt.Errorf("there is no DynamoDB engine %q: choose %s or %s", engine, ExtendDB, Dynoxide)
	}
	platform := runtime.GOOS + "-" + strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	modules := filepath.Join(root, "infra", "local", "node_modules")
	binary, err := filepath.Abs(filepath.Join(modules, "@"+engine, platform, engine))
	if err != nil {
		return "", err
	}
	_, err = os.Stat(binary)
	if errors.Is(err, os.ErrNotExist) && platform != tried {
		return "", fmt.Errorf("there is no DynamoDB engine for %s: only %s was tried; the npm package %q picks one by platform: npm install --no-save --prefix %s %s",
			platform, tried, engine, filepath.Dir(modules), engine)
	}
	if err != nil {
		return "", fmt.Errorf("the DynamoDB engine is missing; install it: make engines (%w)", err)
	}
	return binary, nil
}
