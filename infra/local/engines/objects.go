package engines

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// startObjects runs the S3 engine.
func startObjects(ctx context.Context, c Config) (*process, error) {
	binary, err := filepath.Abs(filepath.Join(c.Root, ".build", "objects"))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("the S3 engine is missing; build it: make engines (%w)", err)
	}
	dir := filepath.Join(c.Dir, "objects")
	return program{name: "objects", dir: dir, health: "/health", port: c.ports[1], command: func(port string) *exec.Cmd {
		address := net.JoinHostPort(c.Host, port)
		cmd := exec.Command(binary, "-addr", address, "-dir", dir, "-access-key", accessKeyID, "-secret-key", secretAccessKey) //nolint:gosec // a binary of ours
		cmd.Env = []string{}
		return cmd
	}}.start(ctx, c.Host)
}
