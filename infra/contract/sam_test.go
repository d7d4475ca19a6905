package contract_test

import (
	"net/http"
	"strings"
)

// The suite runs through `sam local start-api` as through any gateway, except for
// the tests of what SAM decides in its own way, which infra/second-opinion/skips
// lists; and SAM has one request id for all responses.

// asDeployed gives responses the headers that a deployed REST API sends. sam local
// renames none, sends its own name and closes each connection.
type asDeployed struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (d asDeployed) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := d.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	header := response.Header
	if strings.HasPrefix(header.Get("Server"), "Werkzeug/") {
		header.Del("Server")
	}
	if header.Get("Connection") == "close" {
		header.Del("Connection")
	}
	if challenge, ok := header["Www-Authenticate"]; ok {
		header.Del("Www-Authenticate")
		header["X-Amzn-Remapped-Www-Authenticate"] = challenge
	}
	return response, nil
}
