package boot

import (
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
)

// Assemble does what Start does before it serves, with these variables for the
// function's own. What the SDK reads stands in the process's environment.
func Assemble(variables map[string]string, build func(*Environment) lambda.Handler) (lambda.Handler, error) {
	getenv := func(name string) string { return variables[name] }
	env, err := newEnvironment(getenv, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return env.assemble(build)
}
