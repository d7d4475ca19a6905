package boot

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
)

// Assemble is Start without serving, on a network that the test provides, if there is one.
// The function reads these variables; the SDK reads the process's environment.
func Assemble(dial func(ctx context.Context, network, address string) (net.Conn, error), variables map[string]string, build func(*Environment) lambda.Handler) (lambda.Handler, error) {
	config, err := awsConfig(os.Getenv)
	if err != nil {
		return nil, err
	}
	if dial != nil {
		client := newHTTPClient()
		client.Transport.(*http.Transport).DialContext = dial
		config.HTTPClient = client
	}
	return NewEnvironment(config, slog.New(slog.DiscardHandler), func(name string) string { return variables[name] }).handler(build)
}
