// Package openapi checks requests and responses against the service's description. It is
// stricter than the description, which lets a response grow within v1: an undeclared
// member, reason, header or body is an error.
package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// Spec is a description. It may be used concurrently.
type Spec struct {
	document   *openapi3.T
	operations map[string]*openapi3.Operation
	closed     map[*openapi3.Schema]bool
}

// Load reads the description in the file.
func Load(file string) (*Spec, error) {
	document, err := openapi3.NewLoader().LoadFromFile(file)
	if err != nil {
		return nil, fmt.Errorf("loading the description: %w", err)
	}
	s := &Spec{document, map[string]*openapi3.Operation{}, map[*openapi3.Schema]bool{}}
	for _, item := range document.Paths.Map() {
		for _, operation := range item.Operations() {
			s.operations[operation.OperationID] = operation
			for _, p := range operation.Parameters {
				if p.Value.Example != nil && !p.Value.Required {
					return nil, fmt.Errorf("%s: %s is optional and has an example, so Bruno and Postman would always send it", operation.OperationID, p.Value.Name)
				}
			}
			for status, response := range operation.Responses.Map() {
				for _, content := range response.Value.Content {
					if err := s.close(content.Schema.Value); err != nil {
						return nil, fmt.Errorf("%s %s: %w", operation.OperationID, status, err)
					}
				}
			}
		}
	}
	// The examples must fit the closed schemas.
	if err := document.Validate(context.Background(), openapi3.EnableExamplesValidation()); err != nil {
		return nil, fmt.Errorf("validating the description: %w", err)
	}
	return s, nil
}

// close closes an object of a response: it gets no other members, and a text whose
// description lists its values gets no others.
func (s *Spec) close(object *openapi3.Schema) error {
	if s.closed[object] {
		return nil
	}
	s.closed[object] = true
	if allowed := object.AdditionalProperties.Has; allowed == nil || !*allowed {
		return errors.New("an object of a response is not open: a client would refuse a new member")
	}
	object.AdditionalProperties.Has = new(false)
	for name, property := range object.Properties {
		schema := property.Value
		for _, nested := range []*openapi3.SchemaRef{property, schema.Items} {
			if nested != nil && nested.Value.Type.Is("object") {
				if err := s.close(nested.Value); err != nil {
					return err
				}
			}
		}
		switch name {
		case "reason", "message":
			for _, value := range listed.FindAllStringSubmatch(schema.Description, -1) {
				schema.Enum = append(schema.Enum, value[1])
			}
		case "provider":
			schema.Enum = s.document.Components.Schemas["Provider"].Value.Enum
		}
	}
	return nil
}

// listed is a value in a description.
var listed = regexp.MustCompile("`([^`]+)`")

// Statuses maps each status of the operation to the name of its response among the
// components.
func (s *Spec) Statuses(operationID string) map[int]string {
	all := map[int]string{}
	for status, response := range s.operations[operationID].Responses.Map() {
		code, _ := strconv.Atoi(status) // "default" would be 0, which no test reaches
		all[code] = path.Base(response.Ref)
	}
	return all
}

// Has reports whether the operation has the parameter.
func (s *Spec) Has(operationID, parameter string) bool {
	return slices.ContainsFunc(s.operations[operationID].Parameters, func(p *openapi3.ParameterRef) bool { return p.Value.Name == parameter })
}

// Operations maps each operationId to its "METHOD /path", relative to a server.
func (s *Spec) Operations() map[string]string {
	all := map[string]string{}
	for at, item := range s.document.Paths.Map() {
		for method, operation := range item.Operations() {
			all[operation.OperationID] = method + " " + at
		}
	}
	return all
}

// Enum returns the values that the named schema allows.
func (s *Spec) Enum(schema string) (texts []string) {
	for _, value := range s.document.Components.Schemas[schema].Value.Enum {
		texts = append(texts, fmt.Sprint(value))
	}
	return texts
}

// Members are the names of the named schema's members.
func (s *Spec) Members(schema string) []string {
	return slices.Sorted(maps.Keys(s.document.Components.Schemas[schema].Value.Properties))
}

// CheckRequest returns an error if the body is wrong for the operation, which must have one.
func (s *Spec) CheckRequest(operationID string, body []byte) error {
	return checkBody(s.operations[operationID].RequestBody.Value.Content, body)
}

// CheckResponse reports all that is wrong with a response of the operation.
func (s *Spec) CheckResponse(operationID string, status int, headers http.Header, body []byte) error {
	operation := s.operations[operationID]
	if operation == nil || operation.Responses.Status(status) == nil {
		return fmt.Errorf("%s never returns %d", operationID, status)
	}
	r := operation.Responses.Status(status).Value
	errs := []error{checkBody(r.Content, body)}
	if got := headers.Values("Content-Type"); len(r.Content) > 0 && !slices.Equal(got, []string{"application/json"}) {
		errs = append(errs, fmt.Errorf("content type %q", got))
	}
	declared := map[string]bool{}
	for name, h := range r.Headers {
		name = http.CanonicalHeaderKey(name)
		declared[name] = true
		if err := checkHeader(h.Value, headers[name]); err != nil {
			errs = append(errs, fmt.Errorf("header %s: %w", name, err))
		}
	}
	for name := range headers {
		if !declared[name] && !transport(name) {
			errs = append(errs, fmt.Errorf("header %s is not declared", name))
		}
	}
	return errors.Join(errs...)
}

func checkBody(content openapi3.Content, body []byte) error {
	declared := content.Get("application/json")
	if declared == nil {
		if len(body) > 0 {
			return fmt.Errorf("a body of %d bytes, where none is declared", len(body))
		}
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	var value any
	if err := decoder.Decode(&value); err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the body goes on after its JSON value")
	}
	return check(declared.Schema, value, openapi3.EnableJSONSchema2020())
}

// check checks a value. A body and the text of a header need all of JSON Schema, which costs a compilation.
func check(schema *openapi3.SchemaRef, value any, more ...openapi3.SchemaValidationOption) error {
	instant := func(text string) error {
		at, err := time.Parse(time.RFC3339, text)
		if err == nil && at.UTC().Format(time.RFC3339) != text {
			err = fmt.Errorf("%s is not in UTC and whole seconds", text)
		}
		return err
	}
	return schema.Value.VisitJSON(value, append(more, openapi3.EnableFormatValidation(),
		openapi3.WithStringFormatValidator("date-time", openapi3.NewCallbackValidator(instant)))...)
}

func checkHeader(h *openapi3.Header, values []string) error {
	switch {
	case len(values) > 1:
		return fmt.Errorf("repeated %d times", len(values))
	case len(values) == 0 && h.Required:
		return errors.New("missing")
	case len(values) == 0:
		return nil
	}
	// Only the shortest form of a whole number is one: not "007", not "7.0".
	if n, err := strconv.ParseInt(values[0], 10, 64); err == nil && h.Schema.Value.Type.Is("integer") && strconv.FormatInt(n, 10) == values[0] {
		return check(h.Schema, float64(n))
	}
	return check(h.Schema, values[0], openapi3.EnableJSONSchema2020()) // a const is one of these
}

// transport reports whether the header belongs to HTTP or AWS rather than to the
// contract.
func transport(name string) bool {
	switch name {
	case "Content-Type", "Content-Length", "Date", "Connection", "Keep-Alive",
		"Via", "X-Amz-Apigw-Id", "X-Amz-Request-Id", "X-Amzn-Errortype", "X-Amzn-Requestid", "X-Amzn-Trace-Id":
		return true
	}
	return strings.HasPrefix(name, "X-Amz-Cf-")
}
