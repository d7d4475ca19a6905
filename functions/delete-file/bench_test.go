package main

import (
	"context"
	"errors"
	"testing"

	"signalbox.dev/infra/bench/instant"
	"signalbox.dev/shared/files"
)

func BenchmarkDelete(b *testing.B) {
	event := instant.Event("DELETE", "/api/v1/files/{file_id}", "", map[string]string{"file_id": instant.File}, nil)
	object := files.Key(instant.Workspace, instant.File)
	instant.Compare(b, build, event, "200", func(ctx context.Context, c instant.Calls) error {
		slot := c.Update(ctx, "limit#", "SET tat = :a, exp = :b", nil)
		return errors.Join(c.Get(ctx, "key#"), c.Get(ctx, "workspace#"), slot, c.Delete(ctx, object))
	})
}
