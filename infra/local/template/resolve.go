package template

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scope resolves the names of parameters, conditions and resources.
type scope struct {
	*Template
	made Resources
}

// resolve returns a node's value without intrinsic functions: a map, a list, a bool or
// text. It is nil if the node is absent or AWS::NoValue.
func (s scope) resolve(n *yaml.Node) (any, error) {
	switch {
	case n == nil:
		return nil, nil
	case n.Kind == yaml.AliasNode:
		return s.resolve(n.Alias)
	case strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!"):
		value, err := s.call(n)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", s.file, n.Line, n.Tag, err)
		}
		return value, nil
	case n.Kind == yaml.SequenceNode:
		return s.list(n)
	case n.Kind != yaml.MappingNode:
		return n.Value, nil
	}
	values := make(map[string]any)
	for name, member := range members(n) {
		value, err := s.resolve(member)
		if err != nil {
			return nil, err
		}
		if value != nil {
			values[name] = value
		}
	}
	return values, nil
}

func (s scope) list(n *yaml.Node) ([]any, error) {
	var values []any
	for _, item := range n.Content {
		value, err := s.resolve(item)
		if err != nil {
			return nil, err
		}
		if value != nil {
			values = append(values, value)
		}
	}
	return values, nil
}

// arguments has the number of arguments of each intrinsic function that takes a list.
var arguments = map[string]int{"!If": 3, "!Equals": 2, "!Not": 1}

// call evaluates an intrinsic function.
func (s scope) call(n *yaml.Node) (any, error) {
	if len(n.Content) != arguments[n.Tag] {
		return nil, errors.New("only the form that template.yaml uses is supported")
	}
	switch n.Tag {
	case "!Ref", "!GetAtt":
		if n.Value == "AWS::NoValue" {
			return nil, nil
		}
		return s.named(n.Value)
	case "!Sub":
		return s.substituted(n.Value)
	case "!Condition":
		return s.condition(n.Value)
	case "!If":
		holds, err := s.condition(n.Content[0].Value)
		if err != nil {
			return nil, err
		}
		if holds {
			return s.resolve(n.Content[1])
		}
		return s.resolve(n.Content[2])
	case "!Equals":
		values, err := s.list(n)
		return len(values) == 2 && values[0] == values[1], err
	case "!Not":
		holds, err := s.resolve(n.Content[0])
		return holds == false, err
	}
	return nil, errors.New("not supported on one machine")
}

// condition reports whether the named condition holds.
func (s scope) condition(name string) (bool, error) {
	declared := member(member(s.root, "Conditions"), name)
	if declared == nil {
		return false, fmt.Errorf("no condition %q", name)
	}
	holds, err := s.resolve(declared)
	return holds == true, err
}

// named returns the value of a name in !Ref, !GetAtt and ${} in !Sub: a parameter's value,
// a resource's name, or an attribute after a dot.
func (s scope) named(name string) (string, error) {
	if value, ok := s.values[name]; ok {
		return value, nil
	}
	id, attribute, ok := strings.Cut(name, ".")
	if !ok {
		attribute = "Ref"
	}
	value, ok := s.made[id][attribute]
	if !ok {
		return "", fmt.Errorf("%s of %s is not known on one machine", attribute, id)
	}
	return value, nil
}

// substituted replaces each ${Name} and ${Id.Attribute}.
func (s scope) substituted(text string) (string, error) {
	parts := strings.Split(text, "${")
	plain := parts[0]
	for _, part := range parts[1:] {
		name, rest, _ := strings.Cut(part, "}")
		value, err := s.named(name)
		if err != nil {
			return "", err
		}
		plain += value + rest
	}
	return plain, nil
}

// member returns the value under a key of a mapping, or nil.
func member(mapping *yaml.Node, key string) *yaml.Node {
	for name, value := range members(mapping) {
		if name == key {
			return value
		}
	}
	return nil
}

// members iterates over the keys and values of a mapping, in their order, and then over those
// of its merge key (<<) that it does not have itself.
func members(mapping *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		if mapping == nil || mapping.Kind != yaml.MappingNode {
			return
		}
		own := make(map[string]bool)
		var merged *yaml.Node
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			name, value := mapping.Content[i].Value, mapping.Content[i+1]
			if own[name] = true; name == "<<" {
				if merged = value; merged.Kind == yaml.AliasNode {
					merged = merged.Alias
				}
			} else if !yield(name, value) {
				return
			}
		}
		for name, value := range members(merged) {
			if !own[name] && !yield(name, value) {
				return
			}
		}
	}
}
