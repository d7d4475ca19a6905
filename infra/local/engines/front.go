package engines

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
)

// front is a proxy before the DynamoDB at the URL. With it ExtendDB finishes every request
// like DynamoDB, even if the client has disconnected. Without it, if a client disconnects in
// the middle of a write, ExtendDB 0.1.10 drops the request and keeps the lock of its
// database: every write then fails until ExtendDB is started again. A function that is
// killed, or runs out of time, is such a client.
func front(engine string) http.Handler {
	scheme, address, _ := strings.Cut(engine, "://")
	address = strings.TrimSuffix(address, "/")
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = scheme, address
			r.Out.Host = r.In.Host // the signature covers it
		},
		Transport: finishing{&http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 256}},
		// The engine and the connection to it are gone.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}

// finishing sends a request once it is complete, and reads the whole response even
// if the client has disconnected.
type finishing struct {
	http.RoundTripper
}

func (f finishing) RoundTrip(r *http.Request) (*http.Response, error) {
	whole := r.Clone(context.WithoutCancel(r.Context()))
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, fmt.Errorf("reading a request: %w", err)
		}
		whole.Body = io.NopCloser(bytes.NewReader(body))
	}
	answer, err := f.RoundTripper.RoundTrip(whole)
	if err != nil {
		return nil, err
	}
	body := answer.Body
	defer func() { _ = body.Close() }()
	said, err := io.ReadAll(body)
	answer.Body = io.NopCloser(bytes.NewReader(said))
	return answer, err
}
