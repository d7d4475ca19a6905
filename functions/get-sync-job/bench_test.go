package main

import (
	"net/http"
	"testing"

	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/infra/test/kit/instant"
)

func BenchmarkRead(b *testing.B) {
	instant.Compare(b, build, functest.NewEvent(http.MethodGet, "/api/v1/scim/sync-jobs/{id}").At("id", instant.Job), "200")
}
