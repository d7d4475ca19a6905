package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

type header struct {
	name     string // canonical
	required bool
	schema   *jsonschema.Schema
}

// compileHeaders reads the headers that the response declares.
func compileHeaders(response node) ([]header, error) {
	declared, err := response.child("headers")
	if err != nil {
		return nil, err
	}
	var headers []header
	for _, name := range declared.names() {
		n, err := declared.child(name)
		if err != nil {
			return nil, err
		}
		schema, err := n.schema()
		if err != nil {
			return nil, err
		}
		required, _ := n.value["required"].(bool)
		headers = append(headers, header{http.CanonicalHeaderKey(name), required, schema})
	}
	return headers, nil
}

// check holds the header's values in a response against its declaration.
func (h header) check(values []string) error {
	switch {
	case len(values) == 0 && h.required:
		return fmt.Errorf("header %s is missing", h.name)
	case len(values) == 0:
		return nil
	case len(values) > 1:
		return fmt.Errorf("header %s is there %d times", h.name, len(values))
	}
	err := h.schema.Validate(values[0])
	if number, ok := integer(values[0]); ok && err != nil {
		err = h.schema.Validate(number)
	}
	if err != nil {
		return fmt.Errorf("header %s: %w", h.name, err)
	}
	return nil
}

// integer is the value as a schema for integers sees it. Only the shortest
// form of a whole number is one: not "007", not "+7", not "7.0".
func integer(value string) (json.Number, bool) {
	n, err := strconv.ParseInt(value, 10, 64)
	return json.Number(value), err == nil && strconv.FormatInt(n, 10) == value
}

// checkHeaders holds all headers of a response against the declared ones.
func checkHeaders(declared []header, got http.Header) error {
	var errs []error
	known := map[string]bool{}
	for _, h := range declared {
		known[h.name] = true
		errs = append(errs, h.check(got[h.name]))
	}
	for name := range got {
		if !known[name] && !transport(name) {
			errs = append(errs, fmt.Errorf("header %s is not declared", name))
		}
	}
	return errors.Join(errs...)
}

// transport reports whether the header belongs to the way a response travels
// and not to the contract. The last ones are what AWS adds on its own.
func transport(name string) bool {
	switch name {
	case "Content-Type", "Content-Length", "Date", "Connection", "Keep-Alive",
		"Via", "X-Amz-Apigw-Id", "X-Amzn-Requestid", "X-Amzn-Trace-Id":
		return true
	}
	return strings.HasPrefix(name, "X-Amz-Cf-")
}
