package template

import (
	"iter"
	"strings"

	"go.yaml.in/yaml/v3"
)

// member returns the value under a key of a mapping, or nil.
func member(mapping *yaml.Node, key string) *yaml.Node {
	for name, value := range members(mapping) {
		if name == key {
			return value
		}
	}
	return nil
}

// members iterates over the keys and values of a mapping, in its order.
func members(mapping *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		if mapping == nil || mapping.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if !yield(mapping.Content[i].Value, mapping.Content[i+1]) {
				return
			}
		}
	}
}

// withoutAliases replaces every alias in a tree by its node. The tree is only read from
// then on.
func withoutAliases(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	for i, child := range n.Content {
		n.Content[i] = withoutAliases(child)
	}
	return n
}

// isCall reports whether a node calls an intrinsic function, such as !Ref.
func isCall(n *yaml.Node) bool {
	return strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!")
}

// literal returns the text of a scalar, or "".
func literal(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// scalar returns a node without a tag, which can be decoded as text and, if it is
// one, as a number. Text that YAML takes for null stays text.
func scalar(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	if n.ShortTag() == "!!null" {
		n.Tag = "!!str"
	}
	return n
}

// merged combines a function's own properties with those of Globals as SAM does:
// mappings member by member, anything else replaced. SAM would append lists; the
// edition reads none.
func merged(global, own *yaml.Node) *yaml.Node {
	switch {
	case own == nil:
		return global
	case global == nil, global.Kind != yaml.MappingNode, own.Kind != yaml.MappingNode:
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
