package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// front is a proxy before ExtendDB that lets it finish every request, as DynamoDB does,
// when the client has disconnected. If a client disconnects in the middle of a write,
// ExtendDB 0.1.10 drops the request and keeps the lock of its database: every write then
// fails until it is started again. A function that is killed, or runs out of time, is such
// a client.
type front struct {
	url    string
	server *http.Server
}

// newFront listens for the engine at the URL. When it cannot serve any
// longer it sends an error to done.
func newFront(engine string, done chan<- error) (*front, error) {
	target, err := url.Parse(engine)
	if err != nil {
		return nil, fmt.Errorf("reading the address of an engine: %w", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("listening before an engine: %w", err)
	}
	f := &front{url: "http://" + listener.Addr().String()}
	f.server = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // which is signed
		},
		Transport: finishing{&http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 256}},
		// The engine is gone, and so is the connection to it.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	go func() {
		if err := f.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			done <- fmt.Errorf("the proxy before DynamoDB ended: %w", err)
		}
	}()
	return f, nil
}

// finishing sends a request once it is complete, and reads the whole response even
// if the client has disconnected.
type finishing struct {
	http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
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
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, errors.Join(err, answer.Body.Close())
	}
	if err := answer.Body.Close(); err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(said))
	return answer, nil
}
