package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// CheckRequest reports what is wrong with a body sent to the operation.
func (s *Spec) CheckRequest(operationID string, body []byte) error {
	return validate(s.operations[operationID].request, body)
}

// CheckResponse reports all that is wrong with a response of the operation.
func (s *Spec) CheckResponse(operationID string, status int, headers http.Header, body []byte) error {
	r, ok := s.operations[operationID].responses[status]
	if !ok {
		return fmt.Errorf("%s never returns %d", operationID, status)
	}
	errs := []error{validate(r.body, body)}
	if got := headers.Values("Content-Type"); r.body != nil && !slices.Equal(got, []string{"application/json"}) {
		errs = append(errs, fmt.Errorf("content type %q", got))
	}
	for name, h := range r.headers {
		if err := h.check(headers[name]); err != nil {
			errs = append(errs, fmt.Errorf("header %s: %w", name, err))
		}
	}
	for name := range headers {
		if _, declared := r.headers[name]; !declared && !transport(name) {
			errs = append(errs, fmt.Errorf("header %s is not declared", name))
		}
	}
	return errors.Join(errs...)
}

// validate checks a body. A nil schema allows none.
func validate(schema *jsonschema.Schema, body []byte) error {
	if schema == nil {
		if len(body) > 0 {
			return fmt.Errorf("a body of %d bytes, where none is declared", len(body))
		}
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	return schema.Validate(value)
}

func (h header) check(values []string) error {
	switch {
	case len(values) > 1:
		return fmt.Errorf("repeated %d times", len(values))
	case len(values) == 0 && h.required:
		return errors.New("missing")
	case len(values) == 0:
		return nil
	}
	err := h.schema.Validate(values[0])
	// Only the shortest form of a whole number is one: not "007", not "7.0".
	if n, notNumber := strconv.ParseInt(values[0], 10, 64); err != nil && notNumber == nil && strconv.FormatInt(n, 10) == values[0] {
		return h.schema.Validate(json.Number(values[0]))
	}
	return err
}

// transport reports whether the header belongs to HTTP or AWS rather than to the
// contract.
func transport(name string) bool {
	switch name {
	case "Content-Type", "Content-Length", "Date", "Connection", "Keep-Alive",
		"Via", "X-Amz-Apigw-Id", "X-Amzn-Requestid", "X-Amzn-Trace-Id":
		return true
	}
	return strings.HasPrefix(name, "X-Amz-Cf-")
}
