package boot

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyendpoints "github.com/aws/smithy-go/endpoints"

	"signalbox.dev/shared/calls"
)

// Every attempt is bounded: if a connection died while Lambda had the process frozen,
// it must not use up a request's whole time. The SDK's defaults would allow that.
const (
	connectTimeout  = time.Second
	responseTimeout = 2 * time.Second
	// attemptTimeout bounds a whole attempt, including a response that stops in the
	// middle. Three attempts without the pauses fit into a request's time. The
	// request's own deadline ends anything longer.
	attemptTimeout = 3 * time.Second
	// idleTimeout bounds the life of an idle connection: it may have died silently.
	idleTimeout = 15 * time.Second
)

// httpClient is an HTTP client for one service. It closes its idle connections after a
// call without a response: if Lambda froze the process, they may all be dead, and retries
// must not try them one by one. If the call used a connection that was idle before the
// request began, it closes those of every service: otherwise a request that calls two
// services waits twice.
type httpClient struct {
	http.Client
	all *[]*httpClient // of the environment
}

// newHTTPClient has the SDK's settings, except the time-outs. A redirect is an error of
// the service: the signature is for one host.
func newHTTPClient() *httpClient {
	transport := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = connectTimeout }).
		GetTransport()
	transport.TLSHandshakeTimeout = connectTimeout
	transport.ResponseHeaderTimeout = responseTimeout
	transport.IdleConnTimeout = idleTimeout
	return &httpClient{Client: http.Client{
		Transport: transport, Timeout: attemptTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Do implements aws.HTTPClient. The idle connections stay if the request's own time ended,
// or if a new connection could not be opened: neither says anything about them.
func (c *httpClient) Do(request *http.Request) (*http.Response, error) {
	var used connection
	traced := httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{GotConn: used.note})
	response, err := c.Client.Do(request.WithContext(traced))
	if err != nil && request.Context().Err() == nil && !calls.IsUnsent(err) {
		c.CloseIdleConnections()
		if used.idle >= betweenRequests {
			for _, other := range *c.all {
				other.CloseIdleConnections()
			}
		}
	}
	return response, err
}

// betweenRequests is how long a connection is idle before it may have lived through a freeze.
const betweenRequests = time.Second

// connection is the one that a call used.
type connection struct{ idle time.Duration }

func (c *connection) note(got httptrace.GotConnInfo) { c.idle = got.IdleTime }

// warmUpTime bounds the whole warm-up.
const warmUpTime = time.Second

// Endpoint resolves the endpoint of a client.
type Endpoint func(context.Context) (smithyendpoints.Endpoint, error)

// WarmUp opens a connection of the client to the endpoint during the init phase, for all
// services in parallel: name resolution, TCP, TLS and the parsing of root certificates
// are then done before the first request. An error is ignored: the first request then
// opens the connection.
func (e *Environment) WarmUp(client aws.HTTPClient, find Endpoint) {
	e.warmUps = append(e.warmUps, func(ctx context.Context) { connect(ctx, client, find) })
}

// DynamoDB returns the client that every function has; its connection is opened by
// the warm-up. A function makes the clients of other services itself, because
// every other function would link them too.
func DynamoDB(e *Environment) *dynamodb.Client {
	client := dynamodb.NewFromConfig(e.AWS())
	o := client.Options()
	e.WarmUp(o.HTTPClient, func(ctx context.Context) (smithyendpoints.Endpoint, error) {
		return o.EndpointResolverV2.ResolveEndpoint(ctx, dynamodb.EndpointParameters{Region: &o.Region, Endpoint: o.BaseEndpoint}.WithDefaults())
	})
	return client
}

func (e *Environment) warm() {
	ctx, cancel := context.WithTimeout(context.Background(), warmUpTime)
	defer cancel()
	calls.Together(ctx, e.warmUps...)
}

// connect sends an unsigned GET to the endpoint. The connection stays in the client's pool.
func connect(ctx context.Context, client aws.HTTPClient, find Endpoint) {
	endpoint, err := find(ctx)
	if err != nil {
		return
	}
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint.URI.Scheme+"://"+endpoint.URI.Host+"/", nil)
	if err != nil {
		return
	}
	response, err := client.Do(get)
	if err != nil {
		return
	}
	// The connection returns to the pool once the body is read completely.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	_ = response.Body.Close()
}
