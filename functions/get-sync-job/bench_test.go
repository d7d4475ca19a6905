package main

import (
	"net/http"
	"testing"

	"signalbox.dev/infra/bench/instant"
	"signalbox.dev/infra/testkit/functest"
)

func BenchmarkRead(b *testing.B) {
	instant.Compare(b, build, functest.NewEvent(http.MethodGet, "/api/v1/scim/sync-jobs/{id}").At("id", instant.Job), "200")
}
