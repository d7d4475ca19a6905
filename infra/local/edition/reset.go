package edition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Reset removes the state folder, and its tables in another's DynamoDB, unless an
// edition uses it.
func Reset(ctx context.Context, state string, warnings io.Writer) error {
	if _, err := os.Lstat(state); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := Lock(state)
	if errors.Is(err, errInUse) {
		return err
	}
	if err != nil {
		return os.RemoveAll(state) // it cannot be locked, so no edition uses it
	}
	if err := dropTables(ctx, state); err != nil && warnings != nil {
		_, _ = fmt.Fprintln(warnings, "local:", err)
	}
	return errors.Join(os.RemoveAll(state), lock.Close())
}
