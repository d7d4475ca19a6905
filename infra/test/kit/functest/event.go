// Package functest makes a function's requests in the form of API Gateway, and reads its
// answers. Only tests import it.
//
// Every request carries markers in the places in which a caller might put a secret. Every
// answer is checked: its envelope and its log line.
package functest

import (
	"encoding/base64"
	"encoding/json"
	"maps"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/ids"
)

// Private is part of texts that a caller wrote, for example a name. They may be stored
// and sent to their owner, and must not be logged.
const Private = "xqPRIVATEqx"

// Event is a request in the form of API Gateway.
type Event struct {
	Method, Resource string
	// RequestID is the gateway's.
	RequestID string
	// Path, Query, Header and Stage are sent in addition to the noise.
	Path   map[string]string
	Query  map[string][]string
	Header map[string][]string
	Stage  map[string]string
	Body   string
	// IsBase64Encoded means that the body is sent in base64.
	IsBase64Encoded bool
}

// NewEvent returns a request of the method for the resource, practically without a limit.
func NewEvent(method, resource string) Event {
	e := Event{Method: method, Resource: resource, RequestID: string(ids.New[ids.Job]())}
	return e.Limited("1000000", "100000")
}

// As returns the event sent with this API key.
func (e Event) As(token string) Event { return e.With("Authorization", "Bearer "+token) }

// With returns the event with these values of a header.
func (e Event) With(header string, values ...string) Event {
	e.Header = with(e.Header, header, values)
	return e
}

// At returns the event with this parameter of the path.
func (e Event) At(name, value string) Event {
	e.Path = with(e.Path, name, value)
	return e
}

// Asking returns the event with these values of a query parameter.
func (e Event) Asking(name string, values ...string) Event {
	e.Query = with(e.Query, name, values)
	return e
}

// Limited returns the event under this rate of deletions.
func (e Event) Limited(perMinute, burst string) Event {
	e.Stage = map[string]string{"deleteRatePerMinute": perMinute, "deleteBurst": burst}
	return e
}

// Sending returns the event with this value, as JSON, for a body.
func (e Event) Sending(body any) Event {
	encoded, _ := json.Marshal(body) // a test's own text and numbers
	return e.SendingText(string(encoded))
}

// SendingText returns the event with this body, which should be JSON.
func (e Event) SendingText(body string) Event {
	e.Body = body
	return e.With("Content-Type", "application/json")
}

// SendingBytes returns the event with this body, byte for byte.
func (e Event) SendingBytes(body []byte) Event {
	e.IsBase64Encoded = true
	return e.SendingText(base64.StdEncoding.EncodeToString(body))
}

func with[V any](m map[string]V, name string, value V) map[string]V {
	all := map[string]V{name: value}
	for other, v := range m {
		if other != name {
			all[other] = v
		}
	}
	return all
}

// Payload returns the proxy event, payload format 1.0, with markers in every place that a
// function must not read.
func (e Event) Payload() []byte {
	header, query := maps.Clone(e.Header), with(e.Query, "token", []string{kit.Marker + "query"})
	for _, name := range []string{"User-Agent", "Cookie", "X-Request-Id", "X-Api-Key"} {
		header = with(header, name, []string{kit.Marker + name})
	}
	var body any
	if e.Body != "" {
		body = e.Body
	}
	// Text and maps of text always encode.
	encoded, _ := json.Marshal(map[string]any{
		"resource": e.Resource, "path": "/" + kit.Marker + "path", "httpMethod": e.Method,
		"headers": lastOf(header), "multiValueHeaders": header,
		"queryStringParameters": lastOf(query), "multiValueQueryStringParameters": query,
		"pathParameters": e.Path, "stageVariables": e.Stage,
		"requestContext": map[string]any{
			"requestId": e.RequestID, "httpMethod": e.Method, "resourcePath": e.Resource, "stage": "live",
			"identity": map[string]any{"sourceIp": "192.0.2.1", "userAgent": kit.Marker + "agent"},
		},
		"body": body, "isBase64Encoded": e.IsBase64Encoded,
	})
	return encoded
}

// lastOf returns the map of last values that a gateway sends beside the map of all
// values.
func lastOf(all map[string][]string) map[string]string {
	single := map[string]string{}
	for name, values := range all {
		if len(values) > 0 {
			single[name] = values[len(values)-1]
		}
	}
	return single
}
