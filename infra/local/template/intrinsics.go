package template

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var errShape = errors.New("not of the documented form")

// call tells whether a node calls an intrinsic function, in its short form
// (!Sub …) or its long one ({Fn::Sub: …}), and gives the function's name without
// Fn:: and its argument.
func call(n *yaml.Node) (name string, argument *yaml.Node, ok bool) {
	if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
		plain := *n
		plain.Tag = ""
		return n.Tag[1:], &plain, true
	}
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		return "", nil, false
	}
	key, argument := n.Content[0].Value, target(n.Content[1])
	if name, ok = strings.CutPrefix(key, "Fn::"); ok || key == "Ref" {
		return name, argument, true
	}
	return "", nil, false
}

func isCall(n *yaml.Node) bool {
	_, _, ok := call(n)
	return ok
}

func (s scope) call(name string, argument *yaml.Node) (*yaml.Node, error) {
	switch name {
	case "Ref":
		return s.ref(argument.Value)
	case "GetAtt":
		return s.getAtt(argument)
	case "Sub":
		return s.sub(argument)
	case "If":
		return s.branch(argument)
	case "Join":
		return s.join(argument)
	case "Select":
		return s.choose(argument)
	case "Split":
		return s.split(argument)
	case "FindInMap":
		return s.findInMap(argument)
	default:
		return nil, errors.New("not supported on one machine")
	}
}

func (s scope) getAtt(argument *yaml.Node) (*yaml.Node, error) {
	if argument.Kind == yaml.ScalarNode {
		return s.named(argument.Value)
	}
	path, err := s.texts(argument)
	if err != nil {
		return nil, err
	}
	return s.named(strings.Join(path, "."))
}

// placeholder is ${Name}, ${Id.Attribute} or the literal ${!Text} of !Sub.
var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

func (s scope) sub(argument *yaml.Node) (*yaml.Node, error) {
	text, local := argument, (*yaml.Node)(nil)
	if argument.Kind == yaml.SequenceNode {
		if len(argument.Content) != 2 {
			return nil, errShape
		}
		text, local = argument.Content[0], argument.Content[1]
	}
	var failed error
	result := placeholder.ReplaceAllStringFunc(text.Value, func(found string) string {
		name := strings.TrimSpace(found[2 : len(found)-1])
		if plain, ok := strings.CutPrefix(name, "!"); ok {
			return "${" + plain + "}"
		}
		value, err := s.substitute(name, local)
		if err != nil {
			failed = err
		}
		return value
	})
	return scalar(result), failed
}

func (s scope) substitute(name string, local *yaml.Node) (string, error) {
	value := member(local, name)
	var err error
	if value != nil {
		value, err = s.resolve(value)
	} else {
		value, err = s.named(name)
	}
	return literal(value), err
}

func (s scope) branch(argument *yaml.Node) (*yaml.Node, error) {
	if argument.Kind != yaml.SequenceNode || len(argument.Content) != 3 {
		return nil, errShape
	}
	holds, err := s.condition(argument.Content[0])
	if err != nil {
		return nil, err
	}
	chosen := argument.Content[2]
	if holds {
		chosen = argument.Content[1]
	}
	value, err := s.resolve(chosen)
	if value == nil && err == nil {
		return noValue, nil
	}
	return value, err
}

// pair is the two arguments of a function that takes two.
func pair(argument *yaml.Node) (first, second *yaml.Node, err error) {
	if argument.Kind != yaml.SequenceNode || len(argument.Content) != 2 {
		return nil, nil, errShape
	}
	return argument.Content[0], argument.Content[1], nil
}

func (s scope) join(argument *yaml.Node) (*yaml.Node, error) {
	separator, items, err := pair(argument)
	if err != nil {
		return nil, err
	}
	all, err := s.texts(items)
	return scalar(strings.Join(all, separator.Value)), err
}

func (s scope) choose(argument *yaml.Node) (*yaml.Node, error) {
	position, items, err := pair(argument)
	if err != nil {
		return nil, err
	}
	all, err := s.texts(items)
	if err != nil {
		return nil, err
	}
	i, err := strconv.Atoi(position.Value)
	if err != nil || i < 0 || i >= len(all) {
		return nil, fmt.Errorf("no element %s", position.Value)
	}
	return scalar(all[i]), nil
}

func (s scope) split(argument *yaml.Node) (*yaml.Node, error) {
	separator, text, err := pair(argument)
	if err != nil {
		return nil, err
	}
	resolved, err := s.resolve(text)
	if err != nil {
		return nil, err
	}
	all := list()
	for item := range strings.SplitSeq(literal(resolved), separator.Value) {
		all.Content = append(all.Content, scalar(item))
	}
	return all, nil
}

func (s scope) findInMap(argument *yaml.Node) (*yaml.Node, error) {
	path, err := s.texts(argument)
	if err != nil {
		return nil, err
	}
	found := s.mappings
	for _, key := range path {
		if found = member(found, key); found == nil {
			return nil, fmt.Errorf("no %s in the mappings", strings.Join(path, "."))
		}
	}
	return found, nil
}
