package edition

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// errInUse is the error of a state folder that another edition uses.
var errInUse = errors.New("another edition uses")

// Lock takes the state folder for this process until the file is closed or the
// process ends. If another edition has it, the error is errInUse and names that edition:
// the lock file holds what describe wrote.
func Lock(state string) (*os.File, error) {
	path := filepath.Join(state, "lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // a file of the state folder
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := os.ReadFile(path) //nolint:gosec // a file of the state folder
		err = fmt.Errorf("%w %s (%s); stop it first", errInUse, state, holder)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// describe writes the edition's URL and process into the lock file.
func describe(lock *os.File, url string) error {
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err := lock.WriteAt(fmt.Appendf(nil, "%s, process %d", url, os.Getpid()), 0)
	return err
}
