// Package minimal is the smallest Go Lambda with AWS clients. The functions are measured
// against the programs beside it. It configures and warms its clients as the functions do,
// reads an event with the same decoder, and does nothing else.
package minimal

import (
	"context"
	"io"
	"net/http"
	"os"
	"sync"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/go-json-experiment/json"
)

// Event is the part of a proxy event that a minimal program reads.
type Event struct {
	Path    map[string]string   `json:"pathParameters"`
	Headers map[string][]string `json:"multiValueHeaders"`
	Body    string              `json:"body"`
}

// Config configures clients from the variables that Lambda sets.
func Config() aws.Config {
	env, err := config.NewEnvConfig()
	if err != nil {
		os.Exit(1)
	}
	return aws.Config{
		Region: env.Region, Credentials: credentials.StaticCredentialsProvider{Value: env.Credentials},
		HTTPClient: awshttp.NewBuildableClient(), ConfigSources: []any{env},
	}
}

// Warm opens a connection to each service, side by side.
func Warm(client aws.HTTPClient, services ...string) {
	var all sync.WaitGroup
	for _, service := range services {
		all.Go(func() {
			request, err := http.NewRequest(http.MethodGet, os.Getenv("AWS_ENDPOINT_URL_"+service), nil) //nolint:gosec // the harness says where
			if err != nil {
				return
			}
			if answer, err := client.Do(request); err == nil {
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
		})
	}
	all.Wait()
}

// Serve hands each event to act and answers 200.
func Serve(act func(context.Context, Event) error) {
	lambda.Start(handler(act))
}

type handler func(context.Context, Event) error

// Invoke implements lambda.Handler.
func (h handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var e Event
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, err
	}
	if err := h(ctx, e); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"statusCode": http.StatusOK, "body": "{}"})
}
