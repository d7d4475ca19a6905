package main

import (
	"testing"

	"signalbox.dev/infra/bench/instant"
)

func BenchmarkDelete(b *testing.B) {
	event := instant.Event("DELETE", "/api/v1/files/{file_id}", "", map[string]string{"file_id": instant.File}, nil)
	instant.Compare(b, build, event, "200")
}
