package edition

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lockFile is a file of the state folder. It says who has the lock.
const lockFile = "lock"

// InUseError is the error of a state folder that another edition uses.
type InUseError struct{ message string }

// Error implements error.
func (e *InUseError) Error() string { return e.message }

// Lock takes the state folder for this process until the file is closed or the
// process ends. Where another edition has it the error is an *InUseError.
func Lock(state string) (*os.File, error) {
	path := filepath.Join(state, lockFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // a file of the state folder
	if err != nil {
		return nil, fmt.Errorf("locking the state folder: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil && isRemoved(file, path) {
		err = syscall.EWOULDBLOCK // a reset had it open
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(&InUseError{fmt.Sprintf("another edition uses %s%s; stop it first", state, holder(path))}, file.Close())
	}
	if err == nil {
		err = describe(file, "")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking the state folder: %w", err), file.Close())
	}
	return file, nil
}

// describe writes into the lock file who has the lock, and the URL if it serves.
func describe(lock *os.File, url string) error {
	text := "process " + strconv.Itoa(os.Getpid())
	if url != "" {
		text = url + ", " + text
	}
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err := lock.WriteAt([]byte(text), 0)
	return err
}

// isRemoved reports whether the path no longer names the open file.
func isRemoved(file *os.File, path string) bool {
	mine, err := file.Stat()
	named, err2 := os.Stat(path)
	return err != nil || err2 != nil || !os.SameFile(mine, named)
}

// holder returns the text that describe wrote.
func holder(path string) string {
	text, err := os.ReadFile(path) //nolint:gosec // a file of the state folder
	if err != nil || len(text) == 0 {
		return ""
	}
	return " (" + strings.TrimSpace(string(text)) + ")"
}
