package boot

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"github.com/aws/aws-lambda-go/lambda"
)

// Assemble is Start without serving, on a network that the test provides, if there is one.
// The function reads these variables; the SDK reads the process's environment.
func Assemble(dial func(ctx context.Context, network, address string) (net.Conn, error), variables map[string]string, build func(*Environment) lambda.Handler) (lambda.Handler, error) {
	getenv := func(name string) string { return variables[name] }
	env, err := newEnvironment(getenv, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if dial != nil {
		env.client = func() *httpClient {
			client := newHTTPClient()
			client.Transport.(*http.Transport).DialContext = dial
			return client
		}
	}
	return env.assemble(build)
}
