package main

import (
	"net/http"
	"testing"

	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/infra/test/kit/instant"
)

func BenchmarkDelete(b *testing.B) {
	event := functest.NewEvent(http.MethodDelete, "/api/v1/files/{file_id}").At("file_id", instant.File).Asking("workspace_id", instant.Workspace)
	instant.Compare(b, build, event, "200")
}
