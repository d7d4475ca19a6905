package edition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"signalbox.dev/infra/local/state"
)

// Reset removes the state folder, and its tables in another's DynamoDB, unless an
// edition uses it.
func Reset(ctx context.Context, dir string, warnings io.Writer) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := state.Lock(dir)
	if errors.Is(err, state.ErrInUse) {
		return err
	}
	if err != nil {
		return os.RemoveAll(dir) // it cannot be locked, so no edition uses it
	}
	if err := dropTables(ctx, dir); err != nil && warnings != nil {
		_, _ = fmt.Fprintln(warnings, "local:", err)
	}
	return errors.Join(os.RemoveAll(dir), lock.Close())
}
