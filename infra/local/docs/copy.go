package docs

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
)

// licences go with the copy of the viewer.
var licences = map[string]string{"swagger-ui.LICENSE": viewer + "LICENSE", "swagger-ui.NOTICE": viewer + "NOTICE"}

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
		return fmt.Errorf("the viewer is not installed: make engines (%w)", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // for a web server to read
		return err
	}
	all := maps.Clone(files)
	maps.Copy(all, licences)
	for name, place := range all {
		text, err := os.ReadFile(filepath.Join(root, place)) //nolint:gosec // one of the files listed above
		if err != nil {
			return err
		}
		if name == document && server != "" {
			if text, err = withServer(text, server); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil { //nolint:gosec // for a web server to read
			return err
		}
	}
	index, err := os.Create(filepath.Join(folder, "index.html")) //nolint:gosec // the folder that the user chose
	if err != nil {
		return err
	}
	return errors.Join(page.Execute(index, values{Server: server, Policy: policy}), index.Close())
}

func withServer(text []byte, server string) ([]byte, error) {
	if len(servers.FindAll(text, 2)) != 1 {
		return nil, errors.New("openapi.yaml has no list of servers")
	}
	return servers.ReplaceAllLiteral(text, fmt.Appendf(nil, "servers:\n  - url: %q\n", server)), nil
}
