//go:build !linux

package child

import "syscall"

// Only Linux kills a child when its parent is killed. On other systems a function ends
// by itself when its Runtime API is gone. After a kill -9 the user must stop an engine
// by hand.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
