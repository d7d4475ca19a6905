// Package child runs other programs that must not outlive this one: they end when this
// process ends, also by SIGKILL. Each leads its own process group, so Ctrl-C in a terminal
// reaches only this program. It then stops its children in order.
package child

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"
)

// outputWait bounds how long Run waits after the program's end if a child of the program
// still holds the output open. cmd.WaitDelay sets another bound.
const outputWait = time.Second

// Run starts the command and waits for its end. It returns the error of the start or of
// exec.Cmd.Wait.
func Run(cmd *exec.Cmd) error {
	// The kernel ties a child to the thread that started it, not to the process:
	// the thread must be there as long as the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = dieWithParent()
	cmd.WaitDelay = cmp.Or(cmd.WaitDelay, outputWait)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	err := cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}
