package main

import (
	"context"
	"errors"
	"testing"

	"signalbox.dev/infra/bench/instant"
)

func BenchmarkRead(b *testing.B) {
	event := instant.Event("GET", "/api/v1/scim/sync-jobs/{id}", "", map[string]string{"id": instant.Job}, nil)
	instant.Compare(b, build, event, "200", func(ctx context.Context, c instant.Calls) error {
		return errors.Join(c.Get(ctx, "key#"), c.Get(ctx, "job#"+instant.Job))
	})
}
