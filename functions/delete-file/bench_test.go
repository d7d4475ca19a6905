package main

import (
	"context"
	"errors"
	"testing"

	"signalbox.dev/infra/bench/instant"
	"signalbox.dev/shared/files"
)

func BenchmarkDelete(b *testing.B) {
	b.Run("handler", func(b *testing.B) {
		event := instant.Event("DELETE", "/api/v1/files/{file_id}", "", map[string]string{"file_id": instant.File}, nil)
		instant.Measure(b, build, event, "200")
	})
	b.Run("calls", func(b *testing.B) {
		object := files.Key(instant.Workspace, instant.File)
		instant.MeasureCalls(b, func(ctx context.Context, c instant.Calls) error {
			slot := c.Update(ctx, "limit#", "SET tat = :a, exp = :b", nil)
			return errors.Join(c.Get(ctx, "key#"), c.Get(ctx, "workspace#"), slot, c.Delete(ctx, object))
		})
	})
}
