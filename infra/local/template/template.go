// Package template reads what the single-machine edition needs from the SAM
// template: routes, functions, the gateway's own responses, tables, keys and
// buckets. It resolves parameters, conditions and intrinsic functions, but only
// in what it is asked for; what concerns the cloud alone (roles, alarms, log
// groups) is never looked at. It trusts that the template passes cfn-lint and
// refuses what it cannot resolve, by file and line.
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

// Attributes are what a resource that was made returns: "Ref" for what !Ref
// gives, and whatever !GetAtt may ask for under its own name.
type Attributes map[string]string

// Resources maps logical ids to the attributes of the resources made for them.
type Resources map[string]Attributes

// Template is a template whose parameters have their values.
type Template struct {
	root  *yaml.Node
	scope scope
}

// Load reads the template at path and gives its parameters the values in
// overrides, or their defaults. Its error names every parameter that is unknown,
// missing or not allowed to have its value.
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
	root := document.Content[0]
	parameters, err := parameterValues(member(root, "Parameters"), overrides)
	if err != nil {
		return nil, err
	}
	return &Template{root: root, scope: scope{
		file:       filepath.Base(path),
		parameters: parameters,
		conditions: member(root, "Conditions"),
		mappings:   member(root, "Mappings"),
	}}, nil
}

// resource is one resource whose condition, if it has one, holds.
type resource struct {
	id         string
	properties *yaml.Node
}

// resources are all of one type, in the template's order.
func (t *Template) resources(kind string) ([]resource, error) {
	var found []resource
	for id, declared := range members(member(t.root, "Resources")) {
		if literal(member(declared, "Type")) != kind {
			continue
		}
		if condition := member(declared, "Condition"); condition != nil {
			holds, err := t.scope.condition(condition)
			if err != nil {
				return nil, err
			}
			if !holds {
				continue
			}
		}
		found = append(found, resource{id: id, properties: member(declared, "Properties")})
	}
	return found, nil
}

// Outputs are the outputs whose values can be told from what was made; those
// about resources of the cloud alone are left out.
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

// with is the scope in which !Ref and !GetAtt know these resources.
func (t *Template) with(made Resources) scope {
	s := t.scope
	s.resources = made
	return s
}

// fields are the members of a mapping that are wanted, each with a pointer to
// decode it into. A member that is absent, or AWS::NoValue, leaves its target
// alone.
type fields map[string]any

// decode resolves the wanted members, and only these.
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
