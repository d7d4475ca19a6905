package edition

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

const (
	// watchEvery is how often the disk is looked at.
	watchEvery = time.Second
	// scarce is the free space, in bytes, below which a write is tried.
	scarce = 16 << 20
	// probeSize is how much is written: about as much as an engine writes at once.
	probeSize = 256 << 10
)

// disk watches the file system of the state folder: an engine that cannot write
// only answers with an internal error.
type disk struct{ stop, stopped chan struct{} }

// watchDisk writes a line when the disk becomes full, and one when it no longer is;
// then it calls recovered.
func watchDisk(full func() bool, warnings io.Writer, recovered func()) *disk {
	d := &disk{stop: make(chan struct{}), stopped: make(chan struct{})}
	if warnings == nil {
		warnings = io.Discard
	}
	go func() {
		defer close(d.stopped)
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		for was := false; ; {
			select {
			case <-d.stop:
				return
			case <-ticker.C:
			}
			now := full()
			switch {
			case now && !was:
				_, _ = fmt.Fprintln(warnings, "The disk is full: make room; until then requests that write get a 500.")
			case was && !now:
				_, _ = fmt.Fprintln(warnings, "The disk has room again.")
				recovered()
			}
			was = now
		}
	}()
	return d
}

func (d *disk) close() {
	close(d.stop)
	<-d.stopped
}

// isFull reports whether there is no room for anything in the folder. It writes
// only if little is left.
func isFull(dir string) bool {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err == nil && uint64(stat.Bavail)*uint64(stat.Bsize) > scarce && (stat.Files == 0 || stat.Ffree > 0) { //nolint:gosec,unconvert // sizes; types differ by system
		return false
	}
	file, err := os.CreateTemp(dir, "probe-")
	if err == nil {
		_, err = file.Write(make([]byte, probeSize))
		err = errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
