package samlocal

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// proxy passes requests of containers on to the engines. It finds the service in a
// request's signature and signs the request again, because the engines accept only their
// own credentials. An S3 client puts the bucket into the host name; the engine expects it
// in the path.
type proxy struct {
	Config
	port     int
	server   *http.Server
	stop     chan struct{}
	engines  *http.Transport
	services map[string]*url.URL // by their names in signatures
}

func startProxy(c Config) (*proxy, error) {
	p := &proxy{
		Config: c, stop: make(chan struct{}), services: make(map[string]*url.URL),
		engines: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 256},
	}
	for service, at := range map[string]string{"dynamodb": c.Engines.DynamoDB, "kms": c.Engines.KMS, "s3": c.Engines.S3} {
		var err error
		if p.services[service], err = url.Parse(at); err != nil {
			return nil, err
		}
	}
	// Docker Desktop connects containers to this machine's own loopback address.
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: loopback, Port: c.Port})
	if errors.Is(err, syscall.EADDRINUSE) {
		listener, err = net.ListenTCP("tcp", &net.TCPAddr{IP: loopback})
	}
	if err != nil {
		return nil, err
	}
	if at, ok := listener.Addr().(*net.TCPAddr); ok {
		p.port = at.Port
	}
	errorLog := slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn)
	p.server = &http.Server{ReadHeaderTimeout: 10 * time.Second, ErrorLog: errorLog, Handler: &httputil.ReverseProxy{
		Rewrite: p.rewrite, Transport: p, ErrorLog: errorLog,
	}}
	go func() { _ = p.server.Serve(listener) }() // only Close ends it
	go p.followBridge()
	return p, nil
}

func (p *proxy) close() error {
	close(p.stop)
	return p.server.Close()
}

// rewrite puts the bucket into the path.
func (p *proxy) rewrite(r *httputil.ProxyRequest) {
	host, _, _ := strings.Cut(r.In.Host, ":")
	if bucket, ok := strings.CutSuffix(host, "."+Host); ok {
		r.Out.URL.Path = "/" + bucket + r.In.URL.Path
		r.Out.URL.RawPath = "/" + bucket + r.In.URL.EscapedPath()
	}
}

// RoundTrip implements http.RoundTripper.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	service := serviceOf(r.Header.Get("Authorization"))
	engine, ok := p.services[service]
	host, _, _ := strings.Cut(r.Host, ":")
	// This refuses a request without a signature. It also refuses another host name, such
	// as that of a web page whose name leads to this machine (DNS rebinding).
	if !ok || host != Host && !strings.HasSuffix(host, "."+Host) {
		return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	r.URL.Scheme, r.URL.Host, r.Host = engine.Scheme, engine.Host, engine.Host
	if err := p.sign(r, service); err != nil {
		return nil, err
	}
	return p.engines.RoundTrip(r)
}

// sign replaces the signature by one with the engines' credentials.
func (p *proxy) sign(r *http.Request, service string) error {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	for _, name := range []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token"} {
		r.Header.Del(name)
	}
	hash := cmp.Or(r.Header.Get("X-Amz-Content-Sha256"), fmt.Sprintf("%x", sha256.Sum256(body)))
	key := aws.Credentials{AccessKeyID: p.Engines.AccessKeyID, SecretAccessKey: p.Engines.SecretAccessKey}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = service == "s3" })
	return signer.SignHTTP(r.Context(), key, r, hash, service, p.Engines.Region, time.Now())
}

// serviceOf returns the service's name in a signature's credential scope:
// Credential=<id>/<day>/<region>/<service>/aws4_request, …
func serviceOf(authorization string) string {
	_, credential, _ := strings.Cut(authorization, "Credential=")
	credential, _, _ = strings.Cut(credential, ",")
	if scope := strings.Split(credential, "/"); len(scope) > 3 {
		return scope[3]
	}
	return ""
}
