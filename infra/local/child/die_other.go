//go:build !linux

package child

import "syscall"

// Only Linux kills a child when its parent is killed. Elsewhere a function ends
// by itself when its Runtime API is gone; an engine has to be stopped by hand
// after a kill -9.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
