package boot

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyendpoints "github.com/aws/smithy-go/endpoints"

	"signalbox.dev/shared/calls"
)

// warmUpTime bounds the whole warm-up.
const warmUpTime = time.Second

// Endpoint resolves where a client's calls go.
type Endpoint func(context.Context) (smithyendpoints.Endpoint, error)

// WarmUp opens one connection to each of the endpoints during the init phase, all
// side by side: name resolution, TCP, TLS and the parsing of root certificates
// are then done before the first request. An error is ignored:
// the first request then opens the connection.
func (e *Environment) WarmUp(endpoints ...Endpoint) {
	e.endpoints = append(e.endpoints, endpoints...)
}

// DynamoDB returns the client that every function has; its connection is opened by
// the warm-up. A function makes the clients of other services itself, so that no
// other function links them.
func DynamoDB(e *Environment) *dynamodb.Client {
	client := dynamodb.NewFromConfig(e.AWS)
	e.WarmUp(func(ctx context.Context) (smithyendpoints.Endpoint, error) {
		o := client.Options()
		return o.EndpointResolverV2.ResolveEndpoint(ctx, dynamodb.EndpointParameters{Region: &o.Region, Endpoint: o.BaseEndpoint}.WithDefaults())
	})
	return client
}

func (e *Environment) warm() {
	ctx, cancel := context.WithTimeout(context.Background(), warmUpTime)
	defer cancel()
	var opened []func(context.Context)
	for _, find := range e.endpoints {
		opened = append(opened, func(ctx context.Context) { e.connect(ctx, find) })
	}
	calls.Together(ctx, opened...)
}

// connect sends an unsigned GET to the endpoint. The connection stays in the pool
// of the HTTP client that all clients share.
func (e *Environment) connect(ctx context.Context, find Endpoint) {
	endpoint, err := find(ctx)
	if err != nil {
		return
	}
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint.URI.Scheme+"://"+endpoint.URI.Host+"/", nil)
	if err != nil {
		return
	}
	response, err := e.AWS.HTTPClient.Do(get)
	if err != nil {
		return
	}
	// A body that was read to its end gives the connection back.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	_ = response.Body.Close()
}
