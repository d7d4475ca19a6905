package api

import (
	"net/http"

	"signalbox.dev/shared/secret"
)

// NewRequest is a request with this body and these headers, as name, value, …;
// without headers it has a Content-Type that fits.
func NewRequest(body string, header ...string) *Request {
	r := &Request{header: http.Header{}, body: secret.New([]byte(body))}
	if header == nil {
		r.header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.header.Add(header[i], header[i+1])
	}
	return r
}
