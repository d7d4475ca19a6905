// Package openapi holds requests and responses against the service's
// description. It is stricter than the description's own language: a header
// that is not declared is an error, and so is a body where none is.
package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// resource is the name under which the compiler knows the document.
const resource = "https://signalbox.dev/openapi.yaml"

// Spec is a description, compiled. It may be used concurrently.
type Spec struct {
	doc        *document
	operations map[string]operation
}

type operation struct {
	method, path string
	request      *jsonschema.Schema // nil where the operation takes no body
	responses    map[int]response
}

type response struct {
	headers []header
	body    *jsonschema.Schema // nil where the response has no body
}

// Load reads and compiles the description in the file.
func Load(path string) (*Spec, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the path is the test's own
	if err != nil {
		return nil, fmt.Errorf("loading the description: %w", err)
	}
	return Parse(text)
}

// Parse compiles the description that the text holds.
func Parse(text []byte) (*Spec, error) {
	doc, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("decoding the description: %w", err)
	}
	paths, err := doc.find("/paths")
	if err != nil {
		return nil, err
	}
	s := &Spec{doc: doc, operations: map[string]operation{}}
	for _, path := range paths.names() {
		item, err := paths.child(path)
		if err != nil {
			return nil, err
		}
		for _, method := range item.names() {
			n, err := item.child(method)
			if err != nil {
				return nil, err
			}
			if err := s.add(method, path, n); err != nil {
				return nil, fmt.Errorf("compiling %s %s: %w", method, path, err)
			}
		}
	}
	return s, nil
}

func decode(text []byte) (*document, error) {
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	// By way of JSON: the compiler wants numbers as its own decoder makes them.
	again, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(again))
	if err != nil {
		return nil, err
	}
	object, ok := root.(map[string]any)
	if !ok {
		return nil, errors.New("the document is no object")
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource(resource, root); err != nil {
		return nil, err
	}
	return &document{object, c}, nil
}

func (s *Spec) add(method, path string, n node) error {
	id, ok := n.value["operationId"].(string)
	if !ok {
		return errors.New("no operationId")
	}
	op := operation{method: method, path: path, responses: map[int]response{}}
	responses, err := n.child("responses")
	if err != nil {
		return err
	}
	for _, status := range responses.names() {
		code, err := strconv.Atoi(status)
		if err != nil {
			return err
		}
		if op.responses[code], err = compileResponse(responses, status); err != nil {
			return err
		}
	}
	if n.has("requestBody") {
		if op.request, err = compileBody(n, "requestBody"); err != nil {
			return err
		}
	}
	s.operations[id] = op
	return nil
}

func compileResponse(responses node, status string) (response, error) {
	n, err := responses.child(status)
	if err != nil {
		return response{}, err
	}
	var r response
	if r.headers, err = compileHeaders(n); err != nil {
		return response{}, err
	}
	if n.has("content") {
		r.body, err = compileBody(responses, status)
	}
	return r, err
}

// compileBody compiles the JSON schema of the member, a request or a response.
func compileBody(parent node, name string) (*jsonschema.Schema, error) {
	n, err := parent.child(name)
	if err != nil {
		return nil, err
	}
	content, err := n.child("content")
	if err != nil {
		return nil, err
	}
	media, err := content.child("application/json")
	if err != nil {
		return nil, err
	}
	return media.schema()
}
