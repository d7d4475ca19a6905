package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// maxIdle is more than the connections that ten instances of a function open.
const maxIdle = 256

// Services are base URLs.
type Services struct {
	DynamoDB, KMS, S3 string
}

// Recorder is a proxy between functions and services.
type Recorder struct {
	names  map[string]string
	note   func(Call)
	served []*http.Server
}

// New returns a recorder that passes each call to note, from several goroutines at
// once. Names maps the names in requests (tables, buckets and ARNs) to logical ids.
func New(names map[string]string, note func(Call)) *Recorder {
	return &Recorder{names: names, note: note}
}

// Endpoints are those by which the function reaches the services.
func (r *Recorder) Endpoints(function string, to Services) (Services, error) {
	var from Services
	var err error
	for _, service := range []struct {
		to   string
		from *string
		read reader
	}{
		{to.DynamoDB, &from.DynamoDB, r.dynamoDB},
		{to.KMS, &from.KMS, r.kms},
		{to.S3, &from.S3, r.s3},
	} {
		if *service.from, err = r.serve(function, service.to, service.read); err != nil {
			return Services{}, fmt.Errorf("recording %s: %w", function, err)
		}
	}
	return from, nil
}

// reader names the calls of one request.
type reader func(*http.Request, []byte) []Call

// serve proxies the requests of one function to one service.
func (r *Recorder) serve(function, to string, read reader) (string, error) {
	target, err := url.Parse(to)
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Host = p.In.Host // the signature covers it
		},
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: maxIdle},
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return // the function disconnected, or was killed
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		if q.Header.Get("Authorization") != "" {
			for _, call := range read(q, body) {
				call.Function = function
				r.note(call)
			}
		}
		proxy.ServeHTTP(w, q)
	})}
	r.served = append(r.served, server)
	go func() { _ = server.Serve(listener) }() // ends by Close alone
	return "http://" + listener.Addr().String(), nil
}

// Close ends every endpoint, and the requests that are under way there.
func (r *Recorder) Close() error {
	var problems []error
	for _, server := range r.served {
		problems = append(problems, server.Close())
	}
	return errors.Join(problems...)
}

// logical returns the logical id of a name in a request.
func (r *Recorder) logical(name string) string {
	if id, ok := r.names[name]; ok {
		return id
	}
	return name
}

// call starts a call with no conditions.
func (r *Recorder) call(action, resource string) Call {
	return Call{Action: action, Resource: r.logical(resource), Conditions: map[string][]string{}}
}
