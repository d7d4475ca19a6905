package engines

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"signalbox.dev/infra/admin/awsclients"
	"signalbox.dev/infra/test/kit"
)

func TestAMissingEngineIsNamed(t *testing.T) {
	_, err := Start(t.Context(), Config{Root: t.TempDir(), Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("%v, want the command that installs the engine", err)
	}
}

// A DynamoDB that runs already may be ExtendDB, so it is reached through the proxy too.
func TestADynamoDBThatRunsAlready(t *testing.T) {
	var asked http.Request
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = *r
		_, _ = io.WriteString(w, `{"TableNames":["one"]}`)
	}))
	defer there.Close()
	e, err := Start(t.Context(), Config{Root: "../../..", Dir: t.TempDir(), DynamoDB: there.URL + "/"})
	kit.Must(t, err)
	t.Cleanup(e.Close)
	tables, err := awsclients.DynamoDB(e.Config()).ListTables(t.Context(), nil)
	if err != nil || len(tables.TableNames) != 1 || "http://"+asked.Host != e.DynamoDB {
		t.Errorf("%v, %v; %s was asked as %s", tables, err, e.DynamoDB, asked.Host)
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
	e := newEngines(nil)
	at, err := e.start(t.Context(), engine{name: "engine", dir: t.TempDir(), command: func(ctx context.Context, _ string) *exec.Cmd {
		return exec.CommandContext(ctx, "false")
	}})
	if !errors.Is(err, errEnded) {
		t.Errorf("started at %q: %v", at, err)
	}
	e.Close()
}
