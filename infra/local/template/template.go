// Package template reads parts of the SAM template for the single-machine edition: routes,
// functions, the gateway's own responses, tables, keys and buckets. It resolves parameters,
// conditions and the intrinsic functions that template.yaml uses, but only in these; the
// rest (roles, alarms, log groups) is not read. It expects a template that passes cfn-lint.
// If it cannot resolve something, its error names file and line.
package template

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Attributes are the values of a resource that was made: the value of !Ref under
// "Ref", and each attribute of !GetAtt under its own name.
type Attributes map[string]string

// Resources maps logical ids to the attributes of the resources made for them.
type Resources map[string]Attributes

// Template is a template with its parameters' values.
type Template struct {
	root  *yaml.Node
	scope scope
}

// Load reads the template at path. Its parameters get the values in overrides, or
// their defaults. Its error names every parameter that is unknown, missing or has
// a value that is not allowed.
func Load(path string, overrides map[string]string) (*Template, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the caller says which template
	if err != nil {
		return nil, fmt.Errorf("reading the template: %w", err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(document.Content) == 0 {
		return nil, fmt.Errorf("%s is empty", path)
	}
	root := withoutAliases(document.Content[0])
	parameters, err := parameterValues(member(root, "Parameters"), overrides)
	if err != nil {
		return nil, err
	}
	return &Template{root: root, scope: scope{
		file:       filepath.Base(path),
		parameters: parameters,
		conditions: member(root, "Conditions"),
	}}, nil
}

type resource struct {
	id         string
	properties *yaml.Node
}

// resources returns all resources of one type, in the template's order.
func (t *Template) resources(kind string) ([]resource, error) {
	var found []resource
	for id, declared := range members(member(t.root, "Resources")) {
		if literal(member(declared, "Type")) != kind {
			continue
		}
		if member(declared, "Condition") != nil {
			return nil, fmt.Errorf("%s: Condition: %w", id, errShape)
		}
		found = append(found, resource{id: id, properties: member(declared, "Properties")})
	}
	return found, nil
}

// Outputs returns the outputs about the resources made, and leaves out the others.
func (t *Template) Outputs(made Resources) map[string]string {
	outputs := make(map[string]string)
	for name, declared := range members(member(t.root, "Outputs")) {
		value, err := t.with(made).resolve(member(declared, "Value"))
		if err == nil && value != nil {
			outputs[name] = literal(value)
		}
	}
	return outputs
}

// with returns the scope in which !Ref and !GetAtt resolve to these resources.
func (t *Template) with(made Resources) scope {
	s := t.scope
	s.resources = made
	return s
}

// fields maps the names of members to pointers to decode them into. A member
// that is absent, or AWS::NoValue, leaves its target unchanged.
type fields map[string]any

// decode resolves and decodes the named members, and only these.
func (s scope) decode(mapping *yaml.Node, wanted fields) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		resolved, err := s.resolve(member(mapping, name))
		if err == nil && resolved != nil {
			err = resolved.Decode(wanted[name])
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(problems...)
}
