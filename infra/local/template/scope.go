package template

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Region and Account are the values of the pseudo parameters AWS::Region and
// AWS::AccountId on one machine.
const (
	Region  = "us-east-1"
	Account = "000000000000"
	// StackName is the value of AWS::StackName.
	StackName = "signalbox-local"
)

var errShape = errors.New("only the form that template.yaml uses is supported")

// scope resolves names: parameters, conditions and resources.
type scope struct {
	file       string
	parameters map[string]string
	conditions *yaml.Node
	resources  Resources
}

// pseudo returns the value of a pseudo parameter.
func pseudo(name string) (string, bool) {
	switch name {
	case "AWS::Region":
		return Region, true
	case "AWS::AccountId":
		return Account, true
	case "AWS::Partition":
		return "aws", true
	case "AWS::URLSuffix":
		return "amazonaws.com", true
	case "AWS::StackName":
		return StackName, true
	}
	return "", false
}

// named returns the value of a name in !Ref, !GetAtt and ${} in !Sub: a parameter's value,
// a resource's name, or an attribute after a dot.
func (s scope) named(name string) (string, error) {
	if value, ok := pseudo(name); ok {
		return value, nil
	}
	if value, ok := s.parameters[name]; ok {
		return value, nil
	}
	id, attribute, ok := strings.Cut(name, ".")
	if !ok {
		attribute = "Ref"
	}
	value, ok := s.resources[id][attribute]
	if !ok {
		return "", fmt.Errorf("%s of %s is not known on one machine", attribute, id)
	}
	return value, nil
}

// resolve returns the node without intrinsic functions, or nil for a node that is
// absent or AWS::NoValue.
func (s scope) resolve(n *yaml.Node) (*yaml.Node, error) {
	if n == nil {
		return nil, nil
	}
	if isCall(n) {
		value, err := s.call(n)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", s.file, n.Line, n.Tag, err)
		}
		return value, nil
	}
	resolved := &yaml.Node{Kind: n.Kind, Line: n.Line}
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			value, err := s.resolve(item)
			if err != nil {
				return nil, err
			}
			if value != nil {
				resolved.Content = append(resolved.Content, value)
			}
		}
		return resolved, nil
	}
	if n.Kind != yaml.MappingNode {
		return n, nil
	}
	for name, value := range members(n) {
		value, err := s.resolve(value)
		if err != nil {
			return nil, err
		}
		if value != nil {
			resolved.Content = append(resolved.Content, scalar(name), value)
		}
	}
	return resolved, nil
}

// call evaluates an intrinsic function.
func (s scope) call(n *yaml.Node) (*yaml.Node, error) {
	if n.Tag == "!If" {
		return s.branch(n)
	}
	if n.Kind != yaml.ScalarNode {
		return nil, errShape
	}
	var text string
	var err error
	switch {
	case n.Value == "AWS::NoValue":
		return nil, nil
	case n.Tag == "!Ref", n.Tag == "!GetAtt":
		text, err = s.named(n.Value)
	case n.Tag == "!Sub":
		text, err = s.substituted(n.Value)
	default:
		err = errors.New("not supported on one machine")
	}
	return scalar(text), err
}

// placeholder is ${Name} or ${Id.Attribute} of !Sub.
var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

func (s scope) substituted(text string) (string, error) {
	var failed error
	result := placeholder.ReplaceAllStringFunc(text, func(found string) string {
		value, err := s.named(found[2 : len(found)-1])
		if err != nil {
			failed = err
		}
		return value
	})
	return result, failed
}

func (s scope) branch(n *yaml.Node) (*yaml.Node, error) {
	if len(n.Content) != 3 {
		return nil, errShape
	}
	holds, err := s.condition(n.Content[0])
	if err != nil {
		return nil, err
	}
	if holds {
		return s.resolve(n.Content[1])
	}
	return s.resolve(n.Content[2])
}

// condition reports whether a condition holds: a name, !Condition with a name,
// !Equals or !Not.
func (s scope) condition(n *yaml.Node) (bool, error) {
	switch {
	case n.Kind == yaml.ScalarNode:
		declared := member(s.conditions, n.Value)
		if declared == nil {
			return false, fmt.Errorf("%s: no condition %s", s.file, n.Value)
		}
		return s.condition(declared)
	case n.Tag == "!Equals":
		resolved, err := s.resolve(&yaml.Node{Kind: yaml.SequenceNode, Content: n.Content})
		if err != nil {
			return false, err
		}
		if len(resolved.Content) != 2 {
			return false, fmt.Errorf("%s:%d: !Equals: %w", s.file, n.Line, errShape)
		}
		return literal(resolved.Content[0]) == literal(resolved.Content[1]), nil
	case n.Tag == "!Not" && len(n.Content) == 1:
		holds, err := s.condition(n.Content[0])
		return !holds, err
	}
	return false, fmt.Errorf("%s:%d: no condition %s", s.file, n.Line, n.Tag)
}
