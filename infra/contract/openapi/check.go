package openapi

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Statuses lists what the operation can answer, sorted.
func (s *Spec) Statuses(operationID string) []int {
	return slices.Sorted(maps.Keys(s.operations[operationID].responses))
}

// Operations maps each operationId to its "METHOD /path", relative to a server.
func (s *Spec) Operations() map[string]string {
	all := make(map[string]string, len(s.operations))
	for id, op := range s.operations {
		all[id] = fmt.Sprintf("%s %s", strings.ToUpper(op.method), op.path)
	}
	return all
}

// Enum lists the values that the named schema allows.
func (s *Spec) Enum(schema string) ([]string, error) {
	n, err := s.doc.find("/components/schemas/" + schema)
	if err != nil {
		return nil, err
	}
	values, _ := n.value["enum"].([]any)
	texts := make([]string, 0, len(values))
	for _, v := range values {
		texts = append(texts, fmt.Sprint(v))
	}
	return texts, nil
}

// CheckResponse says what is wrong with a response of the operation, if
// anything: its status, its headers, its body.
func (s *Spec) CheckResponse(operationID string, status int, headers http.Header, body []byte) error {
	op, ok := s.operations[operationID]
	if !ok {
		return fmt.Errorf("no operation %q", operationID)
	}
	r, ok := op.responses[status]
	if !ok {
		return fmt.Errorf("%s never answers %d", operationID, status)
	}
	return errors.Join(checkHeaders(r.headers, headers), r.checkBody(headers, body))
}

func (r response) checkBody(headers http.Header, body []byte) error {
	if r.body == nil {
		if len(body) > 0 {
			return fmt.Errorf("a body of %d bytes where none belongs", len(body))
		}
		return nil
	}
	if got := headers.Values("Content-Type"); !slices.Equal(got, []string{"application/json"}) {
		return fmt.Errorf("content type %q", got)
	}
	return validate(r.body, body)
}

// CheckRequest says what is wrong with a body sent to the operation.
func (s *Spec) CheckRequest(operationID string, body []byte) error {
	schema := s.operations[operationID].request
	if schema == nil {
		return fmt.Errorf("%s takes no body", operationID)
	}
	return validate(schema, body)
}

func validate(schema *jsonschema.Schema, body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("body is no JSON: %w", err)
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	return nil
}
