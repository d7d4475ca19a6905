package edition

import "io"

// WatchDisk watches a disk of a test's making until the returned function is
// called.
func WatchDisk(full func() bool, warnings io.Writer, recovered func()) (stop func()) {
	return watchDisk(full, warnings, recovered).close
}
