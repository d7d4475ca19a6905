package template

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// condition tells whether a condition holds: one by its name, or a call of
// Equals, Not, And, Or or Condition.
func (s scope) condition(n *yaml.Node) (bool, error) {
	n = target(n)
	name, argument, ok := call(n)
	switch {
	case n.Kind == yaml.ScalarNode:
		// A name, and !Condition name too.
		return s.namedCondition(n.Value)
	case !ok && member(n, "Condition") != nil:
		return s.namedCondition(literal(member(n, "Condition")))
	case !ok || argument.Kind != yaml.SequenceNode:
		return false, fmt.Errorf("%s:%d: not a condition", s.file, n.Line)
	}
	switch name {
	case "Equals":
		return s.equal(argument)
	case "Not":
		return s.count(argument, func(held, _ int) bool { return held == 0 })
	case "And":
		return s.count(argument, func(held, all int) bool { return held == all })
	case "Or":
		return s.count(argument, func(held, _ int) bool { return held > 0 })
	default:
		return false, fmt.Errorf("%s:%d: no condition %s", s.file, n.Line, name)
	}
}

func (s scope) namedCondition(name string) (bool, error) {
	declared := member(s.conditions, name)
	if declared == nil {
		return false, fmt.Errorf("%s: no condition %s", s.file, name)
	}
	return s.condition(declared)
}

func (s scope) equal(argument *yaml.Node) (bool, error) {
	sides, err := s.texts(argument)
	if err != nil {
		return false, err
	}
	if len(sides) != 2 {
		return false, fmt.Errorf("%s:%d: Equals: %w", s.file, argument.Line, errShape)
	}
	return sides[0] == sides[1], nil
}

// count judges by how many of the conditions hold.
func (s scope) count(argument *yaml.Node, enough func(held, all int) bool) (bool, error) {
	held := 0
	for _, n := range argument.Content {
		holds, err := s.condition(n)
		if err != nil {
			return false, err
		}
		if holds {
			held++
		}
	}
	return enough(held, len(argument.Content)), nil
}
