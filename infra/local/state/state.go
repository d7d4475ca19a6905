// Package state locks a local server's state folder, and reads and writes JSON files in it.
// Damage is the error if something in the folder is wrong or missing.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// Damage is the error if a file of the state folder was read and is wrong, or if
// something that an earlier start made is missing. A start that failed for another reason
// has another error.
type Damage struct {
	Err error
	// Renewable is set if the user may remove the file: the next start then makes it again.
	Renewable bool
}

// Error implements error.
func (d *Damage) Error() string { return d.Err.Error() }

// Unwrap returns the cause.
func (d *Damage) Unwrap() error { return d.Err }

// Read decodes a JSON file and checks its content. It reports whether the file exists.
func Read(path string, into any, check func() error) (exists bool, err error) {
	text, err := os.ReadFile(path) //nolint:gosec // a file of the state folder
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err = json.Unmarshal(text, into); err == nil {
		err = check()
	}
	if err != nil {
		return false, &Damage{Err: fmt.Errorf("reading %s: %w", path, err)}
	}
	return true, nil
}

// Write replaces a JSON file as a whole and flushes it. Most of these files hold keys, so
// other users cannot read them.
func Write(path string, content any) error {
	text, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, append(text, '\n'), 0o600)
}

// ErrInUse is the error of a state folder that another local server uses.
var ErrInUse = errors.New("another local server uses")

// Lock takes the state folder for this process until the file is closed or the
// process ends. If another local server has it, the error is ErrInUse and names that server by
// the text that Describe wrote.
func Lock(dir string) (*os.File, error) {
	path := filepath.Join(dir, "lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // a file of the state folder
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := os.ReadFile(path) //nolint:gosec // a file of the state folder
		err = fmt.Errorf("%w %s (%s); stop it first", ErrInUse, dir, holder)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Describe writes the local server's URL and process into the lock file.
func Describe(lock *os.File, url string) error {
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err := lock.WriteAt(fmt.Appendf(nil, "%s, process %d", url, os.Getpid()), 0)
	return err
}

// IsFull reports whether a file of 256 KB does not fit into the folder's file system. An
// engine writes about as much at once.
func IsFull(dir string) bool {
	file, err := os.CreateTemp(dir, "probe-")
	if err == nil {
		_, err = file.Write(make([]byte, 256<<10))
		err = errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
