package boot

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

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

// httpClient is the HTTP client of all services. After a call without a response it closes its
// idle connections: if Lambda froze the process, they may all be dead, and retries must not try
// them one by one. In an outage of one service, calls to the others connect again.
type httpClient struct{ http.Client }

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
	response, err := c.Client.Do(request)
	if err != nil && request.Context().Err() == nil && !calls.IsUnsent(err) {
		c.CloseIdleConnections()
	}
	return response, err
}

// warmUpTime bounds the whole warm-up.
const warmUpTime = time.Second

// WarmUp opens the connection of a call during the init phase, for all services in parallel:
// name resolution, TCP, TLS and the parsing of root certificates are then done before the first
// request. The call gets an error and is not sent. If no connection can be opened, the first
// request opens it.
func (e *Environment) WarmUp(call func(context.Context)) { e.warmUps = append(e.warmUps, call) }

// DynamoDB returns the client that every function has; its connection is opened by
// the warm-up. A function makes the clients of other services itself, because
// every other function would link them too.
func DynamoDB(e *Environment) *dynamodb.Client {
	client := dynamodb.NewFromConfig(e.AWS())
	e.WarmUp(func(ctx context.Context) { _, _ = client.DescribeEndpoints(ctx, nil) })
	return client
}

func (e *Environment) warm() {
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), warmUpKey{}, true), warmUpTime)
	defer cancel()
	calls.Together(ctx, e.warmUps...)
}

type warmUpKey struct{}

var errNotSent = errors.New("a call of the warm-up is not sent")

// connectOnly is an API option for SDK clients: it sends no call of the warm-up, and connects
// to its host.
func connectOnly(client aws.HTTPClient) func(*middleware.Stack) error {
	send := func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if request, ok := in.Request.(*smithyhttp.Request); ok && ctx.Value(warmUpKey{}) != nil {
			connect(ctx, client, request.URL)
			return middleware.FinalizeOutput{}, middleware.Metadata{}, errNotSent
		}
		return next.HandleFinalize(ctx, in)
	}
	return func(stack *middleware.Stack) error {
		return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("ConnectOnly", send), "ResolveEndpointV2", middleware.After)
	}
}

// connect sends an unsigned GET to the endpoint. The connection stays in the client's pool.
func connect(ctx context.Context, client aws.HTTPClient, endpoint *url.URL) {
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint.Scheme+"://"+endpoint.Host+"/", nil)
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
