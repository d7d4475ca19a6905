// Package record records the calls of each function to AWS in IAM's terms: action, resource
// and the condition keys that policies may test. The functions are unmodified and find the
// services by AWS_ENDPOINT_URL_*, so the recorder gives each function its own endpoint.
// It passes everything on unchanged and records every signed request. An unsigned one is no
// call: a function opens its connections with it.
//
// It only records: nothing here decides whether a call may be made.
package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"signalbox.dev/infra/admin/awsclients"
)

// maxIdle is more than the connections that ten instances of a function open.
const maxIdle = 256

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

func (c Call) set(key string, values ...string) {
	if len(values) > 0 && values[0] != "" {
		c.Conditions[key] = values
	}
}

type recorder struct {
	caller string
	names  map[string]string
}

// call starts a call with no conditions, on a resource with this name in the request.
func (r recorder) call(action, name string) Call {
	return Call{Function: r.caller, Action: action, Resource: cmp.Or(r.names[name], name), Conditions: map[string][]string{}}
}

// calls are the calls that a request makes. Only requests to S3 have no target.
func (r recorder) calls(q *http.Request, body []byte) []Call {
	switch service, operation, _ := strings.Cut(q.Header.Get("X-Amz-Target"), "."); service {
	case "DynamoDB_20120810":
		return r.dynamoDB(operation, body)
	case "TrentService":
		return []Call{r.kms(operation, body)}
	default:
		return r.s3(q, body)
	}
}

// Through returns endpoints of the caller's own for the services. Each call is passed to
// note, from several goroutines at once. Names maps the names in requests (tables, buckets
// and ARNs) to logical ids. The endpoints last as long as the process.
func Through(to awsclients.Engines, caller string, names map[string]string, note func(Call)) (awsclients.Engines, error) {
	targets := map[string]*url.URL{}
	for service, address := range map[string]string{"DynamoDB_20120810": to.DynamoDB, "TrentService": to.KMS, "": to.S3} {
		var err error
		if targets[service], err = url.Parse(address); err != nil {
			return to, fmt.Errorf("recording %s: %w", caller, err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return to, fmt.Errorf("recording %s: %w", caller, err)
	}
	r := recorder{caller, names}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			service, _, _ := strings.Cut(p.In.Header.Get("X-Amz-Target"), ".")
			p.SetURL(targets[service])
			p.Out.Host = p.In.Host // the signature covers it
		},
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: maxIdle},
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return // the function disconnected, or was killed
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		if q.Header.Get("Authorization") != "" {
			for _, call := range r.calls(q, body) {
				note(call)
			}
		}
		proxy.ServeHTTP(w, q)
	})}
	go func() { _ = server.Serve(listener) }()
	to.DynamoDB = "http://" + listener.Addr().String()
	to.KMS, to.S3 = to.DynamoDB, to.DynamoDB
	return to, nil
}
