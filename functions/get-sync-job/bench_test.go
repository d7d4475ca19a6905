package main

import (
	"net/http"
	"testing"

	"signalbox.dev/infra/test/kit/instant"
	"signalbox.dev/infra/test/kit/functest"
)

func BenchmarkRead(b *testing.B) {
	instant.Compare(b, build, functest.NewEvent(http.MethodGet, "/api/v1/scim/sync-jobs/{id}").At("id", instant.Job), "200")
}
