package engines

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// The DynamoDB engines, as SIGNALBOX_DYNAMODB names them.
const (
	ExtendDB = "extenddb"
	Dynoxide = "dynoxide"
)

// startDynamoDB runs the DynamoDB engine on a free port of the host.
func startDynamoDB(ctx context.Context, c Config, dir string) (*process, string, error) {
	binary, err := installed(c.Root, c.DynamoDB)
	if err != nil {
		return nil, "", err
	}
	port, err := freePort(c.Host)
	if err != nil {
		return nil, "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("making the folder of %s: %w", c.DynamoDB, err)
	}
	var cmd *exec.Cmd
	switch c.DynamoDB {
	case ExtendDB:
		cmd = exec.Command(binary, "serve", "--foreground", "-p", port)
		cmd.Env = []string{"EXTENDDB__SERVER__BIND_ADDR=" + c.Host, "EXTENDDB_DEV_ALLOW_ANY_BIND=1", "NO_COLOR=1"}
	case Dynoxide:
		cmd = exec.Command(binary, "--host", c.Host, "-p", port, "--db-path", filepath.Join(dir, "dynoxide.sqlite"))
		cmd.Env = []string{}
	}
	cmd.Dir = dir // where ExtendDB keeps its database
	url := "http://" + net.JoinHostPort(c.Host, port)
	p, err := launch(ctx, c.DynamoDB, cmd, dir, url)
	return p, url, err
}

// installed finds the engine's binary in the npm package for this platform.
func installed(root, engine string) (string, error) {
	if engine != ExtendDB && engine != Dynoxide {
		return "", fmt.Errorf("there is no DynamoDB engine %q: choose %s or %s", engine, ExtendDB, Dynoxide)
	}
	platform, ok := map[string]string{"linux/amd64": "linux-x64", "linux/arm64": "linux-arm64", "darwin/arm64": "darwin-arm64", "darwin/amd64": "darwin-x64"}[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		return "", fmt.Errorf("no DynamoDB engine is known for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	name := "@" + engine + "/" + platform
	binary, err := filepath.Abs(filepath.Join(root, "infra", "local", "node_modules", filepath.FromSlash(name), engine))
	if err != nil {
		return "", err
	}
	_, err = os.Stat(binary)
	if errors.Is(err, os.ErrNotExist) && platform != "linux-x64" {
		return "", fmt.Errorf("the DynamoDB engine is missing: only linux-x64 is pinned and was tried; add %s to infra/local/package.json, or run in a linux-x64 machine", name)
	}
	if err != nil {
		return "", fmt.Errorf("the DynamoDB engine is missing; install it: make engines (%w)", err)
	}
	return binary, nil
}
