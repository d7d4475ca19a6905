package main

import (
	"testing"

	"signalbox.dev/infra/bench/instant"
)

const benchBody = `{"provider":"openai","key":"sk-proj-0123456789abcdefAbCd","name":"first","workspace_id":"` + instant.Workspace + `"}`

func BenchmarkCreate(b *testing.B) {
	instant.Compare(b, build, instant.Event("POST", "/api/v1/byok", benchBody, nil, nil), "201")
}

func BenchmarkCreateOnce(b *testing.B) {
	instant.Compare(b, build, instant.Event("POST", "/api/v1/byok", benchBody, nil, map[string]string{"Idempotency-Key": "bench"}), "201")
}
