package engines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"signalbox.dev/infra/test/kit"
)

// Without ExtendDB, the dynoxide in PATH serves a new folder. A used folder keeps its engine.
func TestDynoxideInPlaceOfExtendDB(t *testing.T) {
	t.Setenv("SIGNALBOX_DYNAMODB", "")
	with, without, path, used, extendDBs := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	kit.Must(t, os.MkdirAll(filepath.Dir(Config{Root: with}.extendDBProgram()), 0o700))
	kit.Must(t, os.WriteFile(Config{Root: with}.extendDBProgram(), nil, 0o600))
	kit.Must(t, os.WriteFile(filepath.Join(path, dynoxide), nil, 0o700)) //nolint:gosec // a program
	kit.Must(t, os.Mkdir(filepath.Join(used, dynoxide), 0o700))
	kit.Must(t, os.Mkdir(filepath.Join(extendDBs, extendDB), 0o700))
	for _, c := range []struct{ root, dir, path, want string }{
		{with, t.TempDir(), path, extendDB}, {with, used, path, dynoxide}, {without, t.TempDir(), path, dynoxide},
		{with, used, "", "the tables in " + used + " are Dynoxide's"}, {without, t.TempDir(), "", "install it: make build"},
		{without, extendDBs, path, "install it: make build"},
	} {
		t.Setenv("PATH", c.path)
		if chosen, err := (Config{Root: c.root, Dir: c.dir}).dynamoDB(); !strings.Contains(chosen.name+fmt.Sprint(err), c.want) {
			t.Errorf("%+v: %q, %v", c, chosen.name, err)
		}
	}
}

// If the caller is gone, the engine still gets the whole request and finishes it:
// otherwise ExtendDB would keep its database locked.
func TestTheEngineFinishesARequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cancel()
		_, _ = io.Copy(w, r.Body)
	}))
	defer engine.Close()
	answer := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader("a whole request"))
	front(engine.URL).ServeHTTP(answer, request)
	if got := answer.Body.String(); got != "a whole request" {
		t.Errorf("the engine answered %q", got)
	}
}

// An engine that ends at each start is an error, and Close then has nothing to wait for.
func TestAnEngineThatNeverStartsIsAnError(t *testing.T) {
	e := newEngines()
	at, err := e.start(t.Context(), engine{name: "engine", dir: t.TempDir(), program: "false", arguments: []string{""}})
	if !errors.Is(err, errEnded) {
		t.Errorf("started at %q: %v", at, err)
	}
	e.Close()
}
