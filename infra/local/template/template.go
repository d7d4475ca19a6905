// Package template reads parts of the SAM template for the local server: routes,
// functions, the gateway's own responses, tables, keys and buckets. It resolves parameters,
// conditions and the intrinsic functions that template.yaml uses, but only in these parts.
// It does not read roles, alarms or log groups. It expects a template that passes cfn-lint.
// If it cannot resolve something, its error names file and line.
package template

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"

	"github.com/go-viper/mapstructure/v2"
	"go.yaml.in/yaml/v3"

	"signalbox.dev/infra/local/kms"
)

// The values of the pseudo parameters AWS::Region, AWS::AccountId and AWS::StackName on
// one machine. The first two are in the ARNs of the keys, too.
const (
	Region    = kms.Region
	Account   = kms.Account
	StackName = "signalbox-local"
)

// Attributes are the values of a resource that was made: "Ref" has the value of
// !Ref, and each attribute of !GetAtt has its own name.
type Attributes map[string]string

// Resources maps logical ids to the attributes of the resources made for them.
type Resources map[string]Attributes

// Template is a template with the values of its parameters.
type Template struct {
	file string
	root *yaml.Node
	// values has the parameters and AWS's pseudo parameters.
	values map[string]string
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
	root := document.Content[0]
	values, err := parameterValues(member(root, "Parameters"), overrides)
	if err != nil {
		return nil, err
	}
	maps.Copy(values, map[string]string{
		"AWS::Region": Region, "AWS::AccountId": Account, "AWS::StackName": StackName, "AWS::Partition": "aws", "AWS::URLSuffix": "amazonaws.com",
	})
	return &Template{file: filepath.Base(path), root: root, values: values}, nil
}

// Outputs returns only the outputs about the resources made.
func (t *Template) Outputs(made Resources) map[string]string {
	outputs := make(map[string]string)
	for name, declared := range members(member(t.root, "Outputs")) {
		value, err := scope{t, made}.resolve(member(declared, "Value"))
		if text, ok := value.(string); ok && err == nil {
			outputs[name] = text
		}
	}
	return outputs
}

// Resource is a declared resource with the properties that the local server reads.
type Resource[P any] struct {
	ID         string // logical
	Properties P
}

// declared reads all resources of a type, in the template's order. A property goes into
// the field of its name. If it is absent, or AWS::NoValue, the field keeps the value of
// globals, or the default.
func declared[P any](s scope, kind string, defaults P, globals *yaml.Node) ([]Resource[P], error) {
	var all []Resource[P]
	for id, resource := range members(member(s.root, "Resources")) {
		if declared := member(resource, "Type"); declared == nil || declared.Value != kind {
			continue
		}
		if name := member(resource, "Condition"); name != nil {
			holds, err := s.condition(name.Value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", id, err)
			}
			if !holds {
				continue
			}
		}
		read := Resource[P]{id, defaults}
		if err := errors.Join(s.decode(globals, &read.Properties), s.decode(member(resource, "Properties"), &read.Properties)); err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		all = append(all, read)
	}
	return all, nil
}

// decode resolves the members whose names are fields of the struct into that struct, and
// no others.
func (s scope) decode(mapping *yaml.Node, into any) error {
	values := make(map[string]any)
	var problems []error
	for _, field := range reflect.VisibleFields(reflect.TypeOf(into).Elem()) {
		value, err := s.resolve(member(mapping, field.Name))
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", field.Name, err))
		}
		if value != nil {
			values[field.Name] = value
		}
	}
	return errors.Join(append(problems, mapstructure.WeakDecode(values, into))...)
}
