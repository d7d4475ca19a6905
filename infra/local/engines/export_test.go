package engines

import (
	"net/http"
	"testing"

	"signalbox.dev/infra/testkit"
)

// Front stands before an engine of a test's making.
func Front(t *testing.T, engine string) http.Handler {
	t.Helper()
	f, err := newFront(engine, make(chan error, 1))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = f.server.Close() })
	return f.server.Handler
}
