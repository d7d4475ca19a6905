package engines

import (
	"context"
	"os/exec"
)

// FreePort lets a test see what ports are found.
var FreePort = freePort

// Launch starts an engine of a test's making.
func Launch(ctx context.Context, dir string, command func(port string) *exec.Cmd) error {
	running, err := program{name: "made-up", dir: dir, command: command}.start(ctx, "127.0.0.1")
	if err == nil {
		running.stop()
	}
	return err
}
