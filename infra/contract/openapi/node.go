package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// document is the decoded description. Since OpenAPI 3.1 its schemas are JSON
// Schema 2020-12 as they stand, so the compiler reads them in place.
type document struct {
	root     map[string]any
	compiler *jsonschema.Compiler
}

// node is one object of the document: its JSON Pointer and what stands there.
type node struct {
	doc     *document
	pointer string
	value   map[string]any
}

// find yields the object at the pointer, behind its reference if it is one.
func (d *document) find(pointer string) (node, error) {
	var current any = d.root
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		object, _ := current.(map[string]any)
		current = object[unescape.Replace(name)]
	}
	value, ok := current.(map[string]any)
	if !ok {
		return node{}, fmt.Errorf("no object at %s", pointer)
	}
	if ref, ok := value["$ref"].(string); ok {
		return d.find(strings.TrimPrefix(ref, "#"))
	}
	return node{d, pointer, value}, nil
}

// has reports whether the object has such a member.
func (n node) has(name string) bool {
	_, ok := n.value[name]
	return ok
}

// names are those of the object's members, sorted.
func (n node) names() []string { return slices.Sorted(maps.Keys(n.value)) }

// child yields the object that is the member of that name.
func (n node) child(name string) (node, error) {
	return n.doc.find(n.pointer + "/" + escape.Replace(name))
}

// schema compiles the object's member "schema".
func (n node) schema() (*jsonschema.Schema, error) {
	return n.doc.compiler.Compile(resource + "#" + n.pointer + "/schema")
}

// RFC 6901, section 3.
var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)
