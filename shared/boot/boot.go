// Package boot is the cold start of a function: it reads the environment, configures
// the AWS clients, opens the connections that the first request would otherwise wait
// for, and hands over to Lambda. No other package reads the environment.
package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
	"github.com/aws/smithy-go/middleware"

	"signalbox.dev/shared/calls"
)

// Environment is the environment of a function at its cold start.
type Environment struct {
	// AWS configures SDK clients.
	AWS aws.Config
	// Log writes JSON lines with Lambda's request id in each.
	Log *slog.Logger

	getenv    func(string) string
	missing   []string
	endpoints []Endpoint
}

// Start builds a function and serves it; it returns only by ending the process.
func Start(build func(*Environment) lambda.Handler) {
	// A deployment's alarm distinguishes the new version from the old by this field.
	log := lambdacontext.NewLogger().With("version", lambdacontext.FunctionVersion)
	env, err := newEnvironment(os.Getenv, log) //nolint:forbidigo // the one place
	var handler lambda.Handler
	if err == nil {
		handler, err = env.assemble(build)
	}
	if err != nil {
		env.Log.Error("cold start", "error", err.Error())
		os.Exit(1)
	}
	lambda.Start(handler)
}

// NewEnvironment returns the environment of a function. Its clients use the config with
// the policies of every function. Start makes the one for the process; a test may make
// others.
func NewEnvironment(config aws.Config, log *slog.Logger, getenv func(string) string) *Environment {
	config.Retryer = calls.Retryer
	config.APIOptions = []func(*middleware.Stack) error{calls.Counted, calls.Whole}
	return &Environment{AWS: config, Log: log, getenv: getenv}
}

func newEnvironment(getenv func(string) string, log *slog.Logger) (*Environment, error) {
	config, err := awsConfig()
	env := NewEnvironment(config, log, getenv)
	if err != nil {
		return env, fmt.Errorf("configuring the AWS clients: %w", err)
	}
	return env, nil
}

// assemble builds the handler, reports all that the environment lacks in one error,
// and warms up.
func (e *Environment) assemble(build func(*Environment) lambda.Handler) (lambda.Handler, error) {
	handler := build(e)
	if len(e.missing) > 0 {
		return nil, errors.New("missing from the environment: " + strings.Join(e.missing, ", "))
	}
	e.warm()
	return handler, nil
}

// Get returns a required variable of the environment.
func (e *Environment) Get(name string) string {
	value := e.getenv(name)
	if value == "" {
		e.missing = append(e.missing, name)
	}
	return value
}

// Every attempt is bounded: if a connection died while Lambda had the process frozen,
// it must not use up a request's whole time. The SDK's defaults would allow that.
const (
	connectTimeout  = time.Second
	responseTimeout = 2 * time.Second
	// attemptTimeout bounds a whole attempt, including a response that stops in the
	// middle. Three attempts without the pauses fit into a request's time. The
	// request's own deadline ends anything longer.
	attemptTimeout = 3 * time.Second
)

// awsConfig configures the clients from the variables that Lambda sets, and
// from AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_<SERVICE> if the services are
// elsewhere. Unlike config.LoadDefaultConfig it reads no profiles, single
// sign-on or instance metadata: a function has none, and their code would be a
// sixth of its binary.
func awsConfig() (aws.Config, error) {
	env, err := config.NewEnvConfig()
	if err != nil {
		return aws.Config{}, err
	}
	if env.Region == "" || !env.Credentials.HasKeys() {
		return aws.Config{}, errors.New("AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set, as Lambda sets them")
	}
	configured := aws.Config{
		Region:        env.Region,
		Credentials:   credentials.StaticCredentialsProvider{Value: env.Credentials},
		HTTPClient:    calls.Reconnect(httpClient()),
		ConfigSources: []any{env},
	}
	if env.BaseEndpoint != "" {
		configured.BaseEndpoint = &env.BaseEndpoint
	}
	return configured, nil
}

func httpClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithTimeout(attemptTimeout).
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = connectTimeout }).
		WithTransportOptions(func(t *http.Transport) {
			t.TLSHandshakeTimeout = connectTimeout
			t.ResponseHeaderTimeout = responseTimeout
		})
}

// warmUpTime bounds the whole warm-up.
const warmUpTime = time.Second

// Endpoint resolves the endpoint of a client.
type Endpoint func(context.Context) (smithyendpoints.Endpoint, error)

// WarmUp opens one connection to each of the endpoints during the init phase, all
// side by side: name resolution, TCP, TLS and the parsing of root certificates
// are then done before the first request. An error is ignored:
// the first request then opens the connection.
func (e *Environment) WarmUp(endpoints ...Endpoint) {
	e.endpoints = append(e.endpoints, endpoints...)
}

// DynamoDB returns the client that every function has; its connection is opened by
// the warm-up. A function makes the clients of other services itself, because
// every other function would link them too.
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
	// The connection returns to the pool once the body is read completely.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	_ = response.Body.Close()
}
