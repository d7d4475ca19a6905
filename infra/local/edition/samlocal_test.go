package edition_test

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/local/runtime"
	"signalbox.dev/infra/local/samlocal"
)

// What the edition writes for `sam local` is enough for functions that run
// elsewhere, with credentials of another account and in another region, to answer
// the sample events from the edition's data. It is gone with the edition.
func TestSAMLocal(t *testing.T) {
	o := options(t)
	o.Parameters = map[string]string{"DeleteBurst": "7"}
	e := start(t, o)
	var parameters map[string]string
	readPrivate(t, filepath.Join(o.State, samlocal.Folder, "parameters.yaml"), &parameters)
	if parameters["DeleteBurst"] != "7" || parameters["Architecture"] != "x86_64" && parameters["Architecture"] != "arm64" {
		t.Errorf("parameters: %v", parameters)
	}
	var environment map[string]map[string]string
	readPrivate(t, filepath.Join(o.State, samlocal.Folder, "env.json"), &environment)
	c := runtime.Config{
		Region: "eu-north-1", Account: "123456789012", Output: func(string, []byte) {}, Log: slog.New(slog.DiscardHandler),
		Environment: map[string]string{"AWS_ACCESS_KEY_ID": "another", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"},
	}
	for id, variables := range environment {
		// In place of a container's hosts file.
		variables["HTTP_PROXY"] = strings.Replace(variables["AWS_ENDPOINT_URL_DYNAMODB"], samlocal.Host, "127.0.0.1", 1)
		c.Functions = append(c.Functions, runtime.Function{
			Name: id, Binary: filepath.Join(o.Functions, id, "bootstrap"), Handler: "bootstrap",
			MemoryMB: 256, Timeout: 10 * time.Second, Environment: variables,
		})
	}
	lambda, err := runtime.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, function := range c.Functions {
		event, err := os.ReadFile(filepath.Join(o.State, "events", function.Name+".json")) //nolint:gosec // a file of the state folder
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := lambda.Invoke(t.Context(), function.Name, event); err != nil || !strings.HasPrefix(string(answer), `{"statusCode":20`) {
			t.Errorf("%s: %s %v", function.Name, answer, err)
		}
	}
	lambda.Close()
	// A page of another site is no function.
	wantStatus(t, http.StatusForbidden, http.MethodPost, environment["GetSyncJobFunction"]["HTTP_PROXY"],
		"Credential=AKID/20260101/us-east-1/dynamodb/aws4_request,", "{}")
	wantStatus(t, http.StatusNotFound, http.MethodDelete, fileURL(e, 0), e.Demo.APIKey, "") // it was deleted here
	stop(t, e)
	if _, err := os.Stat(filepath.Join(o.State, samlocal.Folder)); !os.IsNotExist(err) {
		t.Errorf("after the end: %v", err)
	}
}
