package template

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Region and Account are what the pseudo parameters AWS::Region and
// AWS::AccountId give on one machine.
const (
	Region  = "us-east-1"
	Account = "000000000000"
	// StackName is what AWS::StackName gives.
	StackName = "signalbox-local"
)

// noValue is what !Ref AWS::NoValue resolves to: the member it stands for is
// left out.
var noValue = &yaml.Node{}

// scope is what names mean: parameters, conditions, mappings, resources.
type scope struct {
	file       string
	parameters map[string]*yaml.Node
	conditions *yaml.Node
	mappings   *yaml.Node
	resources  Resources
}

// pseudo is the value of a pseudo parameter.
func pseudo(name string) (*yaml.Node, bool) {
	switch name {
	case "AWS::NoValue":
		return noValue, true
	case "AWS::Region":
		return scalar(Region), true
	case "AWS::AccountId":
		return scalar(Account), true
	case "AWS::Partition":
		return scalar("aws"), true
	case "AWS::URLSuffix":
		return scalar("amazonaws.com"), true
	case "AWS::StackName":
		return scalar(StackName), true
	}
	return nil, false
}

// ref is what !Ref gives: a parameter's value or a resource's name.
func (s scope) ref(name string) (*yaml.Node, error) {
	if value, ok := pseudo(name); ok {
		return value, nil
	}
	if value, ok := s.parameters[name]; ok {
		return value, nil
	}
	return s.attribute(name, "Ref")
}

// attribute is what !GetAtt gives.
func (s scope) attribute(id, name string) (*yaml.Node, error) {
	value, ok := s.resources[id][name]
	if !ok {
		return nil, fmt.Errorf("%s of %s is not known on one machine", name, id)
	}
	return scalar(value), nil
}

// named is ref or attribute, as ${} in !Sub and the text form of !GetAtt have it.
func (s scope) named(name string) (*yaml.Node, error) {
	if id, attribute, ok := strings.Cut(name, "."); ok {
		return s.attribute(id, attribute)
	}
	return s.ref(name)
}

// resolve is the node without intrinsic functions, or nil where nothing is there
// or AWS::NoValue stands there.
func (s scope) resolve(n *yaml.Node) (*yaml.Node, error) {
	n = target(n)
	if n == nil || n == noValue {
		return nil, nil
	}
	if name, argument, ok := call(n); ok {
		value, err := s.call(name, argument)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", s.file, n.Line, name, err)
		}
		if value == noValue {
			return nil, nil
		}
		return value, nil
	}
	if n.Kind == yaml.MappingNode {
		return s.resolveMapping(n)
	}
	if n.Kind == yaml.SequenceNode {
		items, err := s.resolveAll(n.Content)
		return list(items...), err
	}
	return n, nil
}

func (s scope) resolveMapping(n *yaml.Node) (*yaml.Node, error) {
	resolved := &yaml.Node{Kind: yaml.MappingNode, Line: n.Line}
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

func (s scope) resolveAll(nodes []*yaml.Node) ([]*yaml.Node, error) {
	var all []*yaml.Node
	for _, n := range nodes {
		value, err := s.resolve(n)
		if err != nil {
			return nil, err
		}
		if value != nil {
			all = append(all, value)
		}
	}
	return all, nil
}

// texts resolves a list of scalars.
func (s scope) texts(n *yaml.Node) ([]string, error) {
	resolved, err := s.resolve(n)
	if err != nil || resolved == nil {
		return nil, err
	}
	var all []string
	err = resolved.Decode(&all)
	return all, err
}
