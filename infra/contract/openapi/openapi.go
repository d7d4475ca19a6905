// Package openapi checks requests and responses against the service's
// description. It is stricter than OpenAPI: an undeclared header is an error, and
// so is a body where none is declared. (kin-openapi accepts both.)
package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// Spec is a compiled description. It may be used concurrently.
type Spec struct {
	operations map[string]operation
	document   *document
}

type operation struct {
	route     string             // "METHOD /path"
	request   *jsonschema.Schema // nil where the operation takes no body
	responses map[int]response
}

type response struct {
	headers map[string]header  // by canonical name
	body    *jsonschema.Schema // nil where the response has no body
}

type header struct {
	required bool
	schema   *jsonschema.Schema
}

// Load reads and compiles the description in the file.
func Load(path string) (*Spec, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the path is the test's own
	if err != nil {
		return nil, fmt.Errorf("loading the description: %w", err)
	}
	d, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("parsing the description: %w", err)
	}
	s := &Spec{map[string]operation{}, d}
	for path, item := range d.find("/paths").children() {
		for method, n := range item.children() {
			s.operations[n.text("operationId")] = n.operation(strings.ToUpper(method) + " " + path)
		}
	}
	if d.err != nil {
		return nil, fmt.Errorf("compiling the description: %w", d.err)
	}
	return s, nil
}

// Statuses returns the statuses of the operation, sorted.
func (s *Spec) Statuses(operationID string) []int {
	return slices.Sorted(maps.Keys(s.operations[operationID].responses))
}

// Operations maps each operationId to its "METHOD /path", relative to a server.
func (s *Spec) Operations() map[string]string {
	all := make(map[string]string, len(s.operations))
	for id, op := range s.operations {
		all[id] = op.route
	}
	return all
}

// Enum returns the values that the named schema allows.
func (s *Spec) Enum(schema string) ([]string, error) {
	values, _ := s.document.find("/components/schemas/" + schema).value["enum"].([]any)
	var texts []string
	for _, v := range values {
		texts = append(texts, fmt.Sprint(v))
	}
	return texts, s.document.err
}

// document is the decoded description. The schemas of OpenAPI 3.1 are JSON
// Schema 2020-12, so the compiler reads them in place. err is the first error of
// any node.
type document struct {
	root     any
	compiler *jsonschema.Compiler
	err      error
}

// resource is the compiler's name of the document.
const resource = "https://signalbox.dev/openapi.yaml"

func parse(text []byte) (*document, error) {
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	// The compiler wants numbers as its own JSON decoder makes them.
	again, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	d := &document{compiler: jsonschema.NewCompiler()}
	if d.root, err = jsonschema.UnmarshalJSON(bytes.NewReader(again)); err != nil {
		return nil, err
	}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	return d, d.compiler.AddResource(resource, d.root)
}

// node is an object of the document and its JSON Pointer.
type node struct {
	document *document
	pointer  string
	value    map[string]any
}

// RFC 6901, section 3.
var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// find returns the object at the pointer, or the object it refers to.
func (d *document) find(pointer string) node {
	current := d.root
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		object, _ := current.(map[string]any)
		current = object[unescape.Replace(name)]
	}
	value, ok := current.(map[string]any)
	if !ok && d.err == nil {
		d.err = fmt.Errorf("no object at %s", pointer)
	}
	if ref, ok := value["$ref"].(string); ok {
		return d.find(strings.TrimPrefix(ref, "#"))
	}
	return node{d, pointer, value}
}

func (n node) child(name string) node { return n.document.find(n.pointer + "/" + escape.Replace(name)) }

func (n node) children() map[string]node {
	all := map[string]node{}
	for name := range n.value {
		all[name] = n.child(name)
	}
	return all
}

// text returns a member that must be text.
func (n node) text(name string) string {
	text, ok := n.value[name].(string)
	if !ok && n.document.err == nil {
		n.document.err = fmt.Errorf("no text %s at %s", name, n.pointer)
	}
	return text
}

// schema compiles the member "schema".
func (n node) schema() *jsonschema.Schema {
	schema, err := n.document.compiler.Compile(resource + "#" + n.pointer + "/schema")
	if err != nil && n.document.err == nil {
		n.document.err = err
	}
	return schema
}

// body compiles the schema of a JSON body.
func (n node) body() *jsonschema.Schema { return n.child("content").child("application/json").schema() }

func (n node) operation(route string) operation {
	op := operation{route: route, responses: map[int]response{}}
	if _, ok := n.value["requestBody"]; ok {
		op.request = n.child("requestBody").body()
	}
	for status, declared := range n.child("responses").children() {
		code, err := strconv.Atoi(status)
		if err != nil && n.document.err == nil {
			n.document.err = fmt.Errorf("status %q of %s", status, route)
		}
		r := response{headers: map[string]header{}}
		for name, h := range declared.child("headers").children() {
			required, _ := h.value["required"].(bool)
			r.headers[http.CanonicalHeaderKey(name)] = header{required, h.schema()}
		}
		if _, ok := declared.value["content"]; ok {
			r.body = declared.body()
		}
		op.responses[code] = r
	}
	return op
}
