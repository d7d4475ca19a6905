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
	"bytes"
	"context"
	_ "embed" // of the page
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"

	"sigs.k8s.io/yaml"

	"signalbox.dev/infra/local/demo"
)

//go:embed page.html
var html string

var page = template.Must(template.New("page").Parse(html))

const (
	document = "openapi.yaml"
	// asJSON is the document for tools that read no YAML. It is written from it.
	asJSON = "openapi.json"
	viewer = "infra/local/node_modules/swagger-ui-dist/"
)

// files are the files that the page loads, by name, with their paths in the repository.
// llms.txt is for programs that write clients (llmstxt.org). The licence goes with the copy.
var files = map[string]string{
	document:               "infra/openapi.yaml",
	"llms.txt":             "infra/local/docs/llms.txt",
	"page.css":             "infra/local/docs/page.css",
	"page.js":              "infra/local/docs/page.js",
	"swagger-ui-bundle.js": viewer + "swagger-ui-bundle.js",
	"swagger-ui.css":       viewer + "swagger-ui.css",
	"swagger-ui.LICENSE":   viewer + "LICENSE",
	"swagger-ui.NOTICE":    viewer + "NOTICE",
}

// policy allows the page its own origin, and the pictures in the viewer's style sheet. No script and no style stands in the page itself.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'"

// Config has the page's sources.
type Config struct {
	// Root is the repository's folder.
	Root string
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
		"/docs/" + asJSON: guard(http.HandlerFunc(c.document)),
		// Its usual address is the root. Its links are relative.
		"/llms.txt": guard(http.RedirectHandler("/docs/llms.txt", http.StatusFound)),
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
		h.Set("Content-Security-Policy", policy+"; frame-ancestors 'none'")
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
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := page.Execute(w, values{Server: "/api/v1", Demo: "demo.json"}); err != nil {
		c.Log.Error("docs", "path", r.URL.Path, "error", err.Error())
	}
}

// values differ between the local server's page and the static copy.
type values struct {
	// Server is the base URL of the API. Empty means those that the document names.
	Server string
	// Demo is the address of the demo account's facts, if there are any.
	Demo string
	// Policy is the Content-Security-Policy, if no header carries it.
	Policy string
}

// demo serves the demo account's facts, keys included.
func (c Config) demo(w http.ResponseWriter, r *http.Request) {
	facts, err := c.Demo(r.Context())
	text, failed := json.Marshal(facts) //nolint:gosec // the page is there to offer the keys
	c.serveJSON(w, r, text, errors.Join(err, failed))
}

// document serves the document as JSON.
func (c Config) document(w http.ResponseWriter, r *http.Request) {
	text, err := os.ReadFile(filepath.Join(c.Root, files[document]))
	if err == nil {
		text, err = yaml.YAMLToJSON(text)
	}
	c.serveJSON(w, r, text, err)
}

// serveJSON serves the text, unless there was an error.
func (c Config) serveJSON(w http.ResponseWriter, r *http.Request, text []byte, err error) {
	if err != nil {
		if r.Context().Err() == nil {
			c.Log.Error("docs", "path", r.URL.Path, "error", err.Error())
		}
		http.Error(w, "see the log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

// servers is the part of the document that names the API's addresses.
var servers = regexp.MustCompile(`(?m)^servers:\n( .*\n)+`)

// Copy writes the page for any web host into the folder, without a demo account.
// The document's servers are replaced by the one given; without one they stay, and
// the page only shows the document. The page sends requests only to its own
// origin: the API lets no other page read its answers.
func Copy(root, folder, server string) error {
	if at, err := url.Parse(server); server != "" && (err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http") {
		return fmt.Errorf("the server %q is no URL: make docs SERVER=https://api.example.com/api/v1", server)
	}
	if _, err := os.Stat(filepath.Join(root, viewer)); err != nil {
		return fmt.Errorf("the viewer is not installed: make build (%w)", err)
	}
	written := make(map[string][]byte)
	for name, path := range files {
		text, err := os.ReadFile(filepath.Join(root, path)) //nolint:gosec // one of the files listed above
		if err != nil {
			return err
		}
		written[name] = text
	}
	if server != "" {
		if len(servers.FindAll(written[document], 2)) != 1 {
			return errors.New("openapi.yaml has no list of servers")
		}
		written[document] = servers.ReplaceAllLiteral(written[document], fmt.Appendf(nil, "servers:\n  - url: %q\n", server))
	}
	text, err := yaml.YAMLToJSON(written[document])
	if err != nil {
		return err
	}
	written[asJSON] = text
	var index bytes.Buffer
	if err := page.Execute(&index, values{Server: server, Policy: policy}); err != nil {
		return err
	}
	written["index.html"] = index.Bytes()
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // for a web server to read
		return err
	}
	for name, text := range written {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil { //nolint:gosec // for a web server to read
			return err
		}
	}
	return nil
}
