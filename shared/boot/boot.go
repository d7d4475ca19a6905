// Package boot is what a function does once, at its cold start: read the
// environment, configure the AWS clients, open the connections that the first
// request would otherwise wait for, and hand over to Lambda. It is the only
// package that reads the environment.
package boot

import (
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

// Environment is what a function finds at its cold start.
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
	env, err := newEnvironment(os.Getenv, lambdacontext.NewLogger()) //nolint:forbidigo // the one place
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

// NewEnvironment returns the environment of a function whose clients use the config,
// under the policies of every function. Start makes that of the process; a test may
// make others.
func NewEnvironment(config aws.Config, log *slog.Logger, getenv func(string) string) *Environment {
	config.Retryer = Retryer
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

// Get is a variable of the environment that the function cannot do without.
func (e *Environment) Get(name string) string {
	value := e.getenv(name)
	if value == "" {
		e.missing = append(e.missing, name)
	}
	return value
}
