package engines

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// stateListen is how Linux writes that a TCP socket listens.
const stateListen = "0A"

// listens reports whether the process has a listening socket on its port. Only
// Linux answers that without another program.
func (p *process) listens() bool {
	number, err := strconv.ParseUint(p.port, 10, 16)
	if err != nil {
		return false
	}
	proc := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	var sockets []string
	for _, table := range []string{"net/tcp", "net/tcp6"} {
		text, _ := os.ReadFile(proc + table) //nolint:gosec // of a child in /proc; of one that has ended there is none
		for line := range strings.Lines(string(text)) {
			// sl, local_address, rem_address, st, and the inode as the tenth.
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == stateListen && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", number)) {
				sockets = append(sockets, "socket:["+f[9]+"]")
			}
		}
	}
	open, _ := filepath.Glob(proc + "fd/*")
	return slices.ContainsFunc(open, func(file string) bool {
		target, err := os.Readlink(file)
		return err == nil && slices.Contains(sockets, target)
	})
}
