// Package record names the calls that the SDK makes to AWS: by service and operation, and in
// IAM's terms by action, resource and the condition keys that policies may test. Nothing here
// decides whether a call may be made. Only tests import it.
package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Request is one attempt of a call.
type Request struct {
	Service   string // DynamoDB, KMS or S3
	Operation string // such as PutItem
	// Invocation is an id that all attempts of a call share. Attempt counts them from 1.
	Invocation string
	Attempt    int
	Header     http.Header
	URL        *url.URL
	Body       []byte
}

// Read reads a request, and leaves it as it was. Only requests to S3 have no target.
func Read(r *http.Request) (Request, error) {
	q := Request{Service: "S3", Header: r.Header, URL: r.URL, Invocation: r.Header.Get("Amz-Sdk-Invocation-Id"), Attempt: 1}
	_, _ = fmt.Sscanf(r.Header.Get("Amz-Sdk-Request"), "attempt=%d", &q.Attempt) // "attempt=2; max=3"
	if r.Body != nil {
		var err error
		if q.Body, err = io.ReadAll(r.Body); err != nil {
			return q, fmt.Errorf("reading a request: %w", err)
		}
		r.Body = io.NopCloser(bytes.NewReader(q.Body))
	}
	target, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch query := r.URL.Query(); {
	case target == "DynamoDB_20120810":
		q.Service, q.Operation = "DynamoDB", operation
	case target == "TrentService":
		q.Service, q.Operation = "KMS", operation
	case query.Has("versions"):
		q.Operation = "ListObjectVersions"
	case query.Has("list-type"):
		q.Operation = "ListObjectsV2"
	case query.Has("uploads"):
		q.Operation = map[string]string{http.MethodGet: "ListMultipartUploads", http.MethodPost: "CreateMultipartUpload"}[r.Method]
	case query.Has("delete"):
		q.Operation = "DeleteObjects"
	default:
		q.Operation = cmp.Or(query.Get("x-id"), r.Method)
	}
	return q, nil
}

// object returns the bucket and the key of a request to S3.
func (q Request) object() (bucket, key string) {
	path := strings.TrimPrefix(q.URL.Path, "/")
	if bucket, _, isHost := strings.Cut(q.URL.Host, ".s3."); isHost {
		return bucket, path
	}
	bucket, key, _ = strings.Cut(path, "/")
	return bucket, key
}

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

func (c Call) set(key string, values ...string) {
	if len(values) > 0 && values[0] != "" {
		c.Conditions[key] = values
	}
}

// Client is the HTTP client of a caller. With SIGNALBOX_CALLS in the environment it prints the
// caller's calls, each shape once, as lines of JSON for infra/test/cloud/iam.
type Client struct {
	aws.HTTPClient

	Caller string // the logical id
	// Resources are the logical ids of tables, buckets and keys by their name in requests.
	Resources map[string]string
}

var (
	recording = os.Getenv("SIGNALBOX_CALLS") != ""
	printed   sync.Map
)

// Do implements aws.HTTPClient.
func (c Client) Do(r *http.Request) (*http.Response, error) {
	if !recording {
		return c.HTTPClient.Do(r)
	}
	q, err := Read(r)
	if err != nil {
		return nil, err
	}
	for _, call := range c.calls(q) {
		line, err := json.Marshal(call)
		if err != nil {
			return nil, err
		}
		if _, known := printed.LoadOrStore(string(line), true); !known {
			fmt.Printf("%s\n", line)
		}
	}
	return c.HTTPClient.Do(r)
}

// call starts a call with no conditions, on a resource with this name in the request.
func (c Client) call(action, name string) Call {
	return Call{Function: c.Caller, Action: action, Resource: cmp.Or(c.Resources[name], name), Conditions: map[string][]string{}}
}

// calls are the calls that a request makes.
func (c Client) calls(q Request) []Call {
	switch q.Service {
	case "DynamoDB":
		return c.dynamoDB(q)
	case "KMS":
		return []Call{c.kms(q)}
	default:
		return c.s3(q)
	}
}
