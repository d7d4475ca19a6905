// Package child runs other programs that must not outlive this one: they end when this
// process ends, also by SIGKILL. Each leads its own process group, so Ctrl-C in a terminal
// reaches only this program. It then stops its children in order.
package child

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"time"
)

// outputWait bounds how long Run waits after the program's end if a child of the program
// still holds the output open. cmd.WaitDelay sets another bound.
const outputWait = time.Second

// Run starts the command, reports that through started, and waits for its end.
// It returns the error of the start or of exec.Cmd.Wait.
func Run(cmd *exec.Cmd, started func()) error {
	// The kernel ties a child to the thread that started it, not to the process:
	// the thread must be there as long as the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = dieWithParent()
	cmd.WaitDelay = cmp.Or(cmd.WaitDelay, outputWait)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	started()
	err := cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// The ports lie below those that systems choose by themselves (from 32768 on
// Linux, from 49152 elsewhere). So no connection takes one of them, not even
// while its server is being started again.
const (
	lowest = 20000
	beyond = 32768
	tries  = 100
)

// FreePort finds a port of the loopback address on which no program listens, for a server
// that cannot be given a socket and that may be killed and started again on the same port.
// Another process may find the same port at the same time, which is unlikely. A server that
// cannot listen on its port needs another.
func FreePort() (string, error) {
	var failed error
	for range tries {
		port := strconv.Itoa(lowest + rand.IntN(beyond-lowest)) //nolint:gosec // no secret
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			return port, listener.Close()
		}
		failed = err
	}
	return "", fmt.Errorf("looking for a free port: %w", failed)
}
