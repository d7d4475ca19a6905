// Package record records the calls of each function to AWS in IAM's terms: action, resource
// and the condition keys that policies may test. The functions are unmodified and find the
// services by AWS_ENDPOINT_URL_*, so the recorder gives each function its own endpoints.
// They pass everything on unchanged and record every signed request. An unsigned one is no
// call: a function opens its connections with it.
//
// It only records: nothing here decides whether a call may be made.
package record

import (
	"encoding/json"
	"strings"
)

// Call is one action on one resource. An operation that IAM judges item by item is as many
// calls. Values that differ from request to request are *: calls with the same shape are
// equal.
type Call struct {
	// Function is the logical id of the caller.
	Function string `json:"function"`
	// Action is IAM's name, such as dynamodb:PutItem.
	Action string `json:"action"`
	// Resource is the logical id, or the name in the request if it has none.
	Resource string `json:"resource"`
	// Object is the key of an S3 object, or empty.
	Object string `json:"object,omitempty"`
	// Conditions are the condition keys of the request and their values, sorted.
	Conditions map[string][]string `json:"conditions"`
}

// String is the call as one line of JSON, the same for equal calls.
func (c Call) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		return err.Error() // not reached: a Call holds strings only
	}
	return string(text)
}

// set sets a condition key, unless the request has no value for it.
func (c Call) set(key string, values ...string) {
	if len(values) > 0 && values[0] != "" {
		c.Conditions[key] = values
	}
}

// kind is the kind of item that a partition key names: key#* of key#1234.
func kind(key string) string {
	prefix, _, ok := strings.Cut(key, "#")
	if !ok {
		return key
	}
	return prefix + "#*"
}

// shape is an object's key with all but the first folder left out.
func shape(key string) string {
	parts := strings.Split(key, "/")
	for i := range parts[1:] {
		parts[i+1] = "*"
	}
	return strings.Join(parts, "/")
}
