package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Call is one attempt of a call, as it was sent.
type Call struct {
	Service   string // DynamoDB, KMS or S3
	Operation string // such as PutItem
	Kind      string // of the items a call to DynamoDB is about, such as "key#"
	Number    int    // of the call among those of its operation, from 1
	OfKind    int    // the same among those of its kind
	Attempt   int    // of this call, from 1
	Failed    bool   // it met a fault

	// Input is the JSON of a call to DynamoDB or KMS.
	Input map[string]any

	// Method, Path, Query and Header are from the HTTP request: they contain the input
	// of a call to S3.
	Method string
	Path   string
	Query  url.Values
	Header http.Header

	invocation string // the same for all attempts of one call
}

// read describes a request and leaves it as it was.
func read(r *http.Request) (Call, error) {
	c := Call{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone(),
		invocation: r.Header.Get("Amz-Sdk-Invocation-Id"),
		Attempt:    1,
	}
	// "attempt=2; max=3"; other clients than the SDK do not send it.
	_, _ = fmt.Sscanf(r.Header.Get("Amz-Sdk-Request"), "attempt=%d", &c.Attempt)
	target, operation, ok := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !ok {
		c.Service, c.Operation = "S3", s3Operation(c)
		return c, nil
	}
	c.Service, c.Operation = map[string]string{"DynamoDB_20120810": "DynamoDB", "TrentService": "KMS"}[target], operation
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return Call{}, fmt.Errorf("reading a request to record it: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err := json.Unmarshal(body, &c.Input); err != nil {
		return Call{}, fmt.Errorf("recording a request: %w", err)
	}
	c.Kind = kindOf(c.Input)
	return c, nil
}

// s3Operation names a request to S3. Where method and path are ambiguous, the SDK
// adds x-id.
func s3Operation(c Call) string {
	switch {
	case c.Query.Has("x-id"):
		return c.Query.Get("x-id")
	case c.Method == http.MethodGet && c.Query.Has("versions"):
		return "ListObjectVersions"
	case c.Method == http.MethodGet && c.Query.Has("list-type"):
		return "ListObjectsV2"
	case c.Method == http.MethodPost && c.Query.Has("delete"):
		return "DeleteObjects"
	case c.Method == http.MethodHead:
		return "HeadObject"
	default:
		return c.Method + " " + c.Path
	}
}

// kindOf returns the kind of item that a call to DynamoDB is about: its partition key
// up to the "#". The kinds of a transaction's items are joined by "+". It is "" if the
// input names no item. It distinguishes two look-ups that run side by side, whichever
// is sent first.
func kindOf(input map[string]any) string {
	for _, member := range []string{"Key", "Item"} {
		if kind := kindAt(input[member]); kind != "" {
			return kind
		}
	}
	var kinds []string
	for _, table := range object(input["RequestItems"]) {
		for _, key := range list(object(table)["Keys"]) {
			kinds = append(kinds, kindAt(key))
		}
	}
	for _, write := range list(input["TransactItems"]) {
		for _, action := range object(write) {
			kinds = append(kinds, kindOf(object(action)))
		}
	}
	return strings.Join(slices.Compact(kinds), "+")
}

// kindAt returns the kind of a primary key, or of an item that contains one.
func kindAt(item any) string {
	pk, _ := object(object(item)["pk"])["S"].(string)
	return pk[:strings.Index(pk, "#")+1]
}

// object and list return the value, or nothing if it has another type.
func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
