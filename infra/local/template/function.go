package template

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Function is one AWS::Serverless::Function, Globals merged in.
type Function struct {
	// ID is the logical id.
	ID          string
	Handler     string
	MemoryMB    int
	Timeout     time.Duration
	Environment map[string]string
}

// Route sends a method and path of the REST API to a function.
type Route struct {
	Method, Path string
	// Function is the logical id.
	Function string
}

// Functions returns all functions, their environments resolved against the resources made.
func (t *Template) Functions(made Resources) ([]Function, error) {
	var functions []Function
	err := t.eachFunction(func(id string, properties *yaml.Node) error {
		// SAM's defaults.
		seconds, f := 3, Function{ID: id, MemoryMB: 128}
		environment := member(properties, "Environment")
		err := t.with(made).decode(properties, fields{"Handler": &f.Handler, "MemorySize": &f.MemoryMB, "Timeout": &seconds})
		if err == nil {
			err = t.with(made).decode(environment, fields{"Variables": &f.Environment})
		}
		f.Timeout = time.Duration(seconds) * time.Second
		functions = append(functions, f)
		return err
	})
	return functions, err
}

// Routes returns the functions' Api events.
func (t *Template) Routes() ([]Route, error) {
	var routes []Route
	err := t.eachFunction(func(id string, properties *yaml.Node) error {
		for _, event := range members(member(properties, "Events")) {
			if literal(member(event, "Type")) != "Api" {
				continue
			}
			route := Route{Function: id}
			if err := t.scope.decode(member(event, "Properties"), fields{"Path": &route.Path, "Method": &route.Method}); err != nil {
				return err
			}
			route.Method = strings.ToUpper(route.Method)
			routes = append(routes, route)
		}
		return nil
	})
	return routes, err
}

func (t *Template) eachFunction(visit func(id string, properties *yaml.Node) error) error {
	declared, err := t.resources("AWS::Serverless::Function")
	if err != nil {
		return err
	}
	globals := member(member(t.root, "Globals"), "Function")
	for _, r := range declared {
		if err := visit(r.id, merged(globals, r.properties)); err != nil {
			return fmt.Errorf("%s: %w", r.id, err)
		}
	}
	return nil
}
