package engines

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// versityGW is the S3 engine of the single-machine edition.
func versityGW(c Config) (program, error) {
	binary, err := built(c.Root)
	dir := filepath.Join(c.Dir, "objects")
	return program{name: "objects", dir: dir, health: "/health", command: func(ctx context.Context, port string) *exec.Cmd {
		address := net.JoinHostPort(host, port)
		cmd := exec.CommandContext(ctx, binary, "-addr", address, "-dir", dir, "-access-key", accessKeyID, "-secret-key", secretAccessKey) //nolint:gosec // a binary of ours
		cmd.Env = []string{}
		return cmd
	}}, err
}

// built finds the S3 engine's binary.
func built(root string) (string, error) {
	binary, err := filepath.Abs(filepath.Join(root, ".build", "objects"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(binary); err != nil {
		return "", fmt.Errorf("the S3 engine is missing; build it: make engines (%w)", err)
	}
	return binary, nil
}
