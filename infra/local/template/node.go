package template

import (
	"iter"

	"go.yaml.in/yaml/v3"
)

// member is the value under a key of a mapping, or nil.
func member(mapping *yaml.Node, key string) *yaml.Node {
	for name, value := range members(mapping) {
		if name == key {
			return value
		}
	}
	return nil
}

// members are the keys and values of a mapping, in its order.
func members(mapping *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		mapping = target(mapping)
		if mapping == nil || mapping.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if !yield(mapping.Content[i].Value, target(mapping.Content[i+1])) {
				return
			}
		}
	}
}

// target follows an alias to its anchor.
func target(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// literal is the text of a scalar, or nothing.
func literal(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// scalar is a value without a tag, so that it can be decoded as text and, where
// it is one, as a number; but text that YAML takes for null stays text.
func scalar(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	if n.ShortTag() == "!!null" {
		n.Tag = "!!str"
	}
	return n
}

func list(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Content: items}
}

// merged lays a function's own property over the one from Globals as SAM does:
// mappings member by member, lists one after the other, anything else replaced.
func merged(global, own *yaml.Node) *yaml.Node {
	switch {
	case own == nil:
		return global
	case global == nil || global.Kind != own.Kind || isCall(global) || isCall(own):
		return own
	case own.Kind == yaml.SequenceNode:
		return list(append(append([]*yaml.Node{}, global.Content...), own.Content...)...)
	case own.Kind != yaml.MappingNode:
		return own
	}
	both := &yaml.Node{Kind: yaml.MappingNode}
	for name, value := range members(global) {
		both.Content = append(both.Content, scalar(name), merged(value, member(own, name)))
	}
	for name, value := range members(own) {
		if member(global, name) == nil {
			both.Content = append(both.Content, scalar(name), value)
		}
	}
	return both
}
