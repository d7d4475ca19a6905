package main

import (
	"net/http"
	"testing"

	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/infra/test/kit/instant"
)

var benchEvent = functest.NewEvent(http.MethodPost, "/api/v1/byok").
	SendingText(`{"provider":"openai","key":"sk-proj-0123456789abcdefAbCd","name":"first","workspace_id":"` + instant.Workspace + `"}`)

func BenchmarkCreate(b *testing.B) { instant.Compare(b, build, benchEvent, "201") }

func BenchmarkCreateOnce(b *testing.B) {
	instant.Compare(b, build, benchEvent.With("Idempotency-Key", "bench"), "201")
}
