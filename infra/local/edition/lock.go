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

// InUseError is the error of a state folder that another edition uses.
type InUseError struct{ message string }

// Error implements error.
func (e *InUseError) Error() string { return e.message }

// Lock takes the state folder for this process until the file is closed or the
// process ends. Where another edition has it the error is an *InUseError.
func Lock(state string) (*os.File, error) {
	path := filepath.Join(state, "lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // a file of the state folder
	if err != nil {
		return nil, fmt.Errorf("locking the state folder: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(&InUseError{fmt.Sprintf("another edition uses %s%s; stop it first", state, holder(path))}, file.Close())
	}
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking the state folder: %w", err), file.Close())
	}
	return file, nil
}

// holder returns the process that wrote the lock file.
func holder(path string) string {
	text, err := os.ReadFile(path) //nolint:gosec // a file of the state folder
	if err != nil || len(text) == 0 {
		return ""
	}
	return " (process " + strings.TrimSpace(string(text)) + ")"
}
