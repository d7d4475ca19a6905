package engines

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// service is what an engine stands in for.
type service struct {
	variable string // names another engine than the first
	engines  []engine
}

// engine is a program that serves one service.
type engine struct {
	name string
	// program finds what is installed, and how it is run. Nil means that the
	// engine runs in this process.
	program func(Config) (program, error)
}

// The indexes of services.
const (
	dynamoDB = iota
	objects
	keys
)

// services are the engines of each service. The first is the single-machine
// edition's; the others are second opinions for tests.
var services = [...]service{
	dynamoDB: {"SIGNALBOX_DYNAMODB", []engine{{ExtendDB, extendDB}, {"dynamodb-local", dynamoDBLocal}}},
	objects:  {"SIGNALBOX_S3", []engine{{"versitygw", versityGW}, {"s3mock", s3Mock}}},
	keys:     {"SIGNALBOX_KMS", []engine{{"signalbox", nil}, {"moto", moto}}},
}

// chosen returns the engine that the variable names.
func (s service) chosen() (engine, error) {
	name := os.Getenv(s.variable)
	if name == "" {
		return s.engines[0], nil
	}
	if i := slices.IndexFunc(s.engines, func(e engine) bool { return e.name == name }); i >= 0 {
		return s.engines[i], nil
	}
	names := make([]string, len(s.engines))
	for i, e := range s.engines {
		names[i] = e.name
	}
	return engine{}, fmt.Errorf("there is no engine %q: %s is one of %s", name, s.variable, strings.Join(names, ", "))
}
