package record

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"signalbox.dev/infra/reach"
)

// maxIdle is more than the connections that ten instances of a function open.
const maxIdle = 256

// Recorder is a proxy between one caller and the services.
type Recorder struct {
	caller string
	names  map[string]string
	note   func(Call)
}

// Through returns endpoints of the caller's own for the services. Each call is passed to
// note, from several goroutines at once. Names maps the names in requests (tables, buckets
// and ARNs) to logical ids. The endpoints last as long as the process.
func Through(to reach.Engines, caller string, names map[string]string, note func(Call)) (reach.Engines, error) {
	r := &Recorder{caller, names, note}
	for url, read := range map[*string]reader{&to.DynamoDB: r.dynamoDB, &to.KMS: r.kms, &to.S3: r.s3} {
		var err error
		if *url, err = r.serve(*url, read); err != nil {
			return to, fmt.Errorf("recording %s: %w", caller, err)
		}
	}
	return to, nil
}

// reader returns the calls that a request makes.
type reader func(*http.Request, []byte) []Call

// serve proxies the requests to one service.
func (r *Recorder) serve(to string, read reader) (string, error) {
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
				call.Function = r.caller
				r.note(call)
			}
		}
		proxy.ServeHTTP(w, q)
	})}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), nil
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
