package edition

import (
	"errors"
	"os"
	"syscall"
)

// probeSize is about as much as an engine writes at once, in bytes.
const probeSize = 256 << 10

// isFull reports whether a file of probeSize does not fit into the folder's file system.
func isFull(dir string) bool {
	file, err := os.CreateTemp(dir, "probe-")
	if err == nil {
		_, err = file.Write(make([]byte, probeSize))
		err = errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
