package docs_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"signalbox.dev/infra/local/demo"
	"signalbox.dev/infra/local/docs"
	"signalbox.dev/infra/local/gateway"
	"signalbox.dev/infra/local/template"
	"signalbox.dev/infra/test/kit"
)

// The page and the demo account's keys are served for this machine's own names
// only. Other names get a 421. Other requests get the gateway's response.
func TestPagesBesideTheAPI(t *testing.T) {
	loaded, err := template.Load("../../../template.yaml", nil)
	kit.Must(t, err)
	api, err := loaded.API()
	kit.Must(t, err)
	log := slog.New(slog.DiscardHandler)
	pages := docs.Pages(docs.Config{Root: "../../..", Log: log, Demo: func(context.Context) (demo.Facts, error) {
		return demo.Facts{ManagementKey: "sbx_demo"}, nil
	}})
	g := gateway.New(gateway.Config{API: api, Pages: pages, Log: log})
	server := httptest.NewUnstartedServer(nil)
	server.Config = g.Server()
	server.Start()
	defer server.Close()

	for _, c := range []struct {
		method, target, host string
		status               int
		kind, content        string
	}{
		{"GET", "/docs", "localhost:3000", 200, "text/html", "<title>Signalbox API reference</title>"},
		{"GET", "/docs/swagger-ui-bundle.js", "[::1]:3000", 200, "text/javascript", "SwaggerUIBundle"},
		{"GET", "/docs/openapi.yaml", "127.0.0.1", 200, "application/yaml", "openapi: 3.1.0"},
		{"GET", "/docs/openapi.json", "127.0.0.1", 200, "application/json", `"openapi":"3.1.0"`},
		{"GET", "/docs/", "localhost", 200, "text/html", `type="application/yaml" href="openapi.yaml"`},
		{"GET", "/docs/demo.json", "localhost", 200, "application/json", "sbx_demo"},
		{"HEAD", "/docs/", "localhost", 200, "text/html", ""},
		{"GET", "/docs/demo.json", "rebound.example:3000", 421, "text/plain", "open this page as"},
		{"GET", "/docs/", "127.0.0.1.rebound.example", 421, "text/plain", "open this page as"},
		{"POST", "/docs/", "localhost", 404, "application/json", "Resource not found"},
		{"GET", "/docs/nothing", "localhost", 404, "application/json", "Resource not found"},
		{"GET", "/docs/%64emo.json", "localhost", 404, "application/json", "Resource not found"},
		{"GET", "/docs/../api/v1", "localhost", 404, "application/json", "Resource not found"},
	} {
		request := httptest.NewRequestWithContext(t.Context(), c.method, server.URL, http.NoBody)
		request.RequestURI, request.Host, request.URL.Opaque = "", c.host, c.target
		response, err := server.Client().Do(request)
		kit.Must(t, err)
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		kind := response.Header.Get("Content-Type")
		if err != nil || response.StatusCode != c.status || !strings.HasPrefix(kind, c.kind) || !strings.Contains(string(body), c.content) {
			t.Errorf("%s %s of %s: %d %s %.200s %v, want %+v", c.method, c.target, c.host, response.StatusCode, kind, body, err, c)
		}
		if strings.Contains(string(body), "sbx_demo") != (c.content == "sbx_demo") || response.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s of %s shows the key", c.method, c.target, c.host)
		}
	}
}
