package main

import (
	"testing"

	"signalbox.dev/infra/bench/instant"
)

func BenchmarkRead(b *testing.B) {
	event := instant.Event("GET", "/api/v1/scim/sync-jobs/{id}", "", map[string]string{"id": instant.Job}, nil)
	instant.Compare(b, build, event, "200")
}
