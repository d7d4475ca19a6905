package edition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// resetFile says that a reset has begun. What is left of the state is then of no use,
// and the next start removes it.
const resetFile = "reset"

// Reset removes the state folder, and its tables in another's DynamoDB, unless an
// edition uses it.
func Reset(ctx context.Context, state string, warnings io.Writer) error {
	if _, err := os.Lstat(state); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := Lock(state)
	if inUse, ok := errors.AsType[*InUseError](err); ok {
		return inUse
	}
	if err != nil {
		return os.RemoveAll(state) // it cannot be locked, so that no edition uses it
	}
	err = os.WriteFile(filepath.Join(state, resetFile), nil, 0o600)
	if err == nil {
		err = finishReset(ctx, state, warnings)
	}
	if err == nil {
		err = os.RemoveAll(state)
	}
	return errors.Join(err, lock.Close())
}

// finishReset empties a state folder if its reset has begun. The lock stays, and the mark
// of the reset goes last.
func finishReset(ctx context.Context, state string, warnings io.Writer) error {
	mark := filepath.Join(state, resetFile)
	if _, err := os.Lstat(mark); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := dropTables(ctx, state); err != nil && warnings != nil {
		_, _ = fmt.Fprintln(warnings, "local:", err)
	}
	entries, err := os.ReadDir(state)
	if err != nil {
		return fmt.Errorf("reading the state folder: %w", err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != resetFile && name != lockFile {
			err = errors.Join(err, os.RemoveAll(filepath.Join(state, name)))
		}
	}
	if err == nil {
		err = os.Remove(mark)
	}
	return err
}
