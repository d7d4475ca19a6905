package boot

import (
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"signalbox.dev/shared/calls"
)

// Every attempt is bounded: a connection that died while Lambda had the process
// frozen must not swallow a request's whole time, as the SDK's defaults would
// let it.
const (
	attempts        = 3
	maxBackoff      = time.Second
	connectTimeout  = time.Second
	responseTimeout = 2 * time.Second
	// attemptTimeout bounds the whole of one, including a response that stops in the
	// middle. Three of them fit into a request's time.
	attemptTimeout = 3 * time.Second
)

// awsConfig configures the clients from the variables that Lambda sets, and
// from AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_<SERVICE> where the services are
// elsewhere. Unlike config.LoadDefaultConfig it reads no profiles, single
// sign-on or instance metadata: a function has none of them, and they would be a
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
		HTTPClient:    httpClient(),
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

// Retryer makes the retry policy of every client: the SDK's own, bounded, and
// with what it does not retry by itself.
func Retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.MaxBackoff = maxBackoff
		o.Retryables = append(o.Retryables, calls.Retryables()...)
	})
}
