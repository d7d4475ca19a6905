// Package boot is the cold start of a function: it reads the environment, configures
// the AWS clients, opens the connections that the first request would otherwise wait
// for, and hands over to Lambda. No other package reads the environment.
package boot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"

	"signalbox.dev/shared/calls"
)

// Environment is the environment of a function at its cold start.
type Environment struct {
	// Log writes JSON lines, under the names that Lambda uses.
	Log *slog.Logger

	config  aws.Config
	getenv  func(string) string
	missing []string
	warmUps []func(context.Context)
}

// Start builds a function and serves it; it returns only by ending the process.
func Start(build func(*Environment) lambda.Handler) {
	// A deployment's alarm distinguishes the new version from the old by this field.
	lines := slog.NewJSONHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: lambdacontext.ReplaceAttr})
	log := slog.New(lines).With("version", lambdacontext.FunctionVersion)
	handler, err := coldStart(build, log)
	if err != nil {
		log.Error("cold start", "error", err.Error())
		os.Exit(1)
	}
	lambda.Start(handler)
}

func coldStart(build func(*Environment) lambda.Handler, log *slog.Logger) (lambda.Handler, error) {
	getenv := os.Getenv //nolint:forbidigo // the one place
	config, err := awsConfig(getenv)
	if err != nil {
		return nil, err
	}
	return NewEnvironment(config, log, getenv).handler(build)
}

// NewEnvironment returns the environment of a function. Its clients use the config with
// the policies of every function. Start makes the one for the process; a test may make
// others, with an HTTP client.
func NewEnvironment(config aws.Config, log *slog.Logger, getenv func(string) string) *Environment {
	config.Retryer = calls.Retryer
	if config.HTTPClient == nil {
		config.HTTPClient = newHTTPClient()
	}
	config.APIOptions = append([]func(*middleware.Stack) error{calls.CountAttempts, calls.RefuseMalformed, connectOnly(config.HTTPClient)}, config.APIOptions...)
	return &Environment{Log: log, config: config, getenv: getenv}
}

// handler builds the handler, reports all that the environment lacks in one error,
// and warms up.
func (e *Environment) handler(build func(*Environment) lambda.Handler) (lambda.Handler, error) {
	handler := build(e)
	if len(e.missing) > 0 {
		return nil, errors.New("missing from the environment: " + strings.Join(e.missing, ", "))
	}
	e.warm()
	return handler, nil
}

// AWS returns the configuration of the SDK's clients.
func (e *Environment) AWS() aws.Config { return e.config }

// Get returns a required variable of the environment.
func (e *Environment) Get(name string) string {
	value := e.getenv(name)
	if value == "" {
		e.missing = append(e.missing, name)
	}
	return value
}

// awsConfig configures the clients from the variables that Lambda sets, and from those that
// name other endpoints. The SDK's own config would link its code for profiles, single sign-on
// and instance metadata, which a function does not have.
func awsConfig(getenv func(string) string) (aws.Config, error) {
	keys := aws.Credentials{
		AccessKeyID: getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: getenv("AWS_SESSION_TOKEN"),
	}
	configured := aws.Config{
		Region:      getenv("AWS_REGION"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil }),
	}
	if configured.Region == "" || !keys.HasKeys() {
		return aws.Config{}, errors.New("configuring the AWS clients: AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set, as Lambda sets them")
	}
	fips, errFIPS := isTrue(getenv, "AWS_USE_FIPS_ENDPOINT")
	dualStack, errDualStack := isTrue(getenv, "AWS_USE_DUALSTACK_ENDPOINT")
	if err := cmp.Or(errFIPS, errDualStack); err != nil {
		return aws.Config{}, fmt.Errorf("configuring the AWS clients: %w", err)
	}
	configured.ConfigSources = []any{endpoints{getenv, fips, dualStack}}
	if endpoint := getenv("AWS_ENDPOINT_URL"); endpoint != "" {
		configured.BaseEndpoint = &endpoint
	}
	return configured, nil
}

// isTrue reads a variable that is true or false. An empty one is false.
func isTrue(getenv func(string) string, name string) (bool, error) {
	switch value := getenv(name); strings.ToLower(value) {
	case "true":
		return true, nil
	case "false", "":
		return false, nil
	default:
		return false, fmt.Errorf("%s must be true or false, not %q", name, value)
	}
}

// endpoints is a source of the SDK's clients: it names the endpoints that they use.
type endpoints struct {
	getenv          func(string) string
	fips, dualStack bool
}

// GetServiceBaseEndpoint returns the URL of a service, which the SDK names as in "API Gateway".
func (e endpoints) GetServiceBaseEndpoint(_ context.Context, service string) (string, bool, error) {
	endpoint := e.getenv("AWS_ENDPOINT_URL_" + strings.ToUpper(strings.ReplaceAll(service, " ", "_")))
	return endpoint, endpoint != "", nil
}

// GetUseFIPSEndpoint reports whether a service's FIPS endpoint is used.
func (e endpoints) GetUseFIPSEndpoint(context.Context) (aws.FIPSEndpointState, bool, error) {
	return aws.FIPSEndpointStateEnabled, e.fips, nil
}

// GetUseDualStackEndpoint reports whether a service's endpoint for IPv4 and IPv6 is used.
func (e endpoints) GetUseDualStackEndpoint(context.Context) (aws.DualStackEndpointState, bool, error) {
	return aws.DualStackEndpointStateEnabled, e.dualStack, nil
}
