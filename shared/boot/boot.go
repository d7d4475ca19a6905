// Package boot is the cold start of a function: it reads the environment, configures
// the AWS clients, opens the connections that the first request would otherwise wait
// for, and hands over to Lambda. No other package reads the environment.
package boot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/middleware"

	"signalbox.dev/shared/calls"
)

// Environment is the environment of a function at its cold start.
type Environment struct {
	// Log writes JSON lines with Lambda's request id in each.
	Log *slog.Logger

	config  aws.Config
	getenv  func(string) string
	missing []string
	warmUps []func(context.Context)
}

// Start builds a function and serves it; it returns only by ending the process.
func Start(build func(*Environment) lambda.Handler) {
	// A deployment's alarm distinguishes the new version from the old by this field.
	log := lambdacontext.NewLogger().With("version", lambdacontext.FunctionVersion)
	handler, err := coldStart(build, log)
	if err != nil {
		log.Error("cold start", "error", err.Error())
		os.Exit(1)
	}
	lambda.Start(handler)
}

func coldStart(build func(*Environment) lambda.Handler, log *slog.Logger) (lambda.Handler, error) {
	config, err := awsConfig()
	if err != nil {
		return nil, err
	}
	return NewEnvironment(config, log, os.Getenv).handler(build) //nolint:forbidigo // the one place
}

// NewEnvironment returns the environment of a function. Its clients use the config with
// the policies of every function. Start makes the one for the process; a test may make
// others, with an HTTP client.
func NewEnvironment(config aws.Config, log *slog.Logger, getenv func(string) string) *Environment {
	config.Retryer = calls.Retryer
	config.APIOptions = append([]func(*middleware.Stack) error{calls.CountAttempts, calls.RefuseMalformed}, config.APIOptions...)
	if config.HTTPClient == nil {
		config.HTTPClient = newHTTPClient()
	}
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

// awsConfig configures the clients from the variables that Lambda sets, and
// from AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_<SERVICE> if the services are
// elsewhere. Unlike config.LoadDefaultConfig it reads no profiles, single
// sign-on or instance metadata: a function has none, and their code would be a
// sixth of its binary.
func awsConfig() (aws.Config, error) {
	env, err := config.NewEnvConfig()
	if err != nil {
		return aws.Config{}, fmt.Errorf("configuring the AWS clients: %w", err)
	}
	if env.Region == "" || !env.Credentials.HasKeys() {
		return aws.Config{}, errors.New("configuring the AWS clients: AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set, as Lambda sets them")
	}
	configured := aws.Config{
		Region:        env.Region,
		Credentials:   credentials.StaticCredentialsProvider{Value: env.Credentials},
		ConfigSources: []any{env},
	}
	if env.BaseEndpoint != "" {
		configured.BaseEndpoint = &env.BaseEndpoint
	}
	return configured, nil
}
