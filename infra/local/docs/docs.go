// Package docs serves the reference page: the contract, infra/openapi.yaml, in
// Swagger UI, with the demo account's keys and ids filled in. Only the
// local server serves it, beside the API, on the loopback interface.
//
// Every user and program of this machine may read the demo account's keys, but no web
// page may. Another origin's page cannot read a response: there is no
// Access-Control-Allow-Origin, and there is a Cross-Origin-Resource-Policy. DNS
// rebinding fails too, because a request with another Host is refused.
package docs

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"signalbox.dev/infra/local/demo"
)

const (
	document = "openapi.yaml"
	viewer   = "infra/local/node_modules/swagger-ui-dist/"
)

// files are the files that the page loads, by name, with their paths in the repository.
var files = map[string]string{
	document:               "infra/openapi.yaml",
	"page.css":             "infra/local/docs/page.css",
	"page.js":              "infra/local/docs/page.js",
	"swagger-ui-bundle.js": viewer + "swagger-ui-bundle.js",
	"swagger-ui.css":       viewer + "swagger-ui.css",
}

// policy allows the page its own origin, and the pictures in the viewer's style sheet. No script
// and no style stands in the page itself.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Config has the page's sources.
type Config struct {
	Root string // the repository's folder
	// Demo returns the demo account, brought up to date.
	Demo func(context.Context) (demo.Facts, error)
	// Log gets why an answer is a 500.
	Log *slog.Logger
}

// Pages returns the handlers by exact path.
func Pages(c Config) map[string]http.Handler {
	pages := map[string]http.Handler{
		"/docs":           guard(http.RedirectHandler("/docs/", http.StatusFound)),
		"/docs/":          guard(http.HandlerFunc(c.page)),
		"/docs/demo.json": guard(http.HandlerFunc(c.demo)),
	}
	for name, path := range files {
		pages["/docs/"+name] = guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if name == document {
				w.Header().Set("Content-Type", "application/yaml")
			}
			http.ServeFile(w, r, filepath.Join(c.Root, path))
		}))
	}
	return pages
}

// guard refuses a host name that is not this machine's own, and sets the headers
// that every answer has.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", policy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		if !isLoopback(r.Host) {
			http.Error(w, "open this page as http://127.0.0.1 or http://localhost, with the port", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || host == "127.0.0.1" || host == "::1" || host == "[::1]"
}

func (c Config) page(w http.ResponseWriter, r *http.Request) {
	if _, err := os.Stat(filepath.Join(c.Root, viewer)); err != nil {
		http.Error(w, "the viewer of this page is not installed; stop the local server and run: make build", http.StatusServiceUnavailable)
		return
	}
	http.ServeFile(w, r, filepath.Join(c.Root, "infra/local/docs/page.html"))
}

// demo serves the demo account's facts, keys included.
func (c Config) demo(w http.ResponseWriter, r *http.Request) {
	facts, err := c.Demo(r.Context())
	text, failed := json.Marshal(facts) //nolint:gosec // the page is there to offer the keys
	if err = errors.Join(err, failed); err != nil {
		if r.Context().Err() == nil {
			c.Log.Error("docs", "path", r.URL.Path, "error", err.Error())
		}
		http.Error(w, "see the log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}
