package functest

import (
	"encoding/json"
	"maps"

	"signalbox.dev/shared/ids"
)

// Event is a request as API Gateway hands it over.
type Event struct {
	Method, Resource string
	// RequestID is the gateway's.
	RequestID string
	// Path, Query, Header and Stage hold what is sent besides the noise.
	Path   map[string]string
	Query  map[string][]string
	Header map[string][]string
	Stage  map[string]string
	Body   string
}

// NewEvent is a request of the method for the resource, with a limiter that
// lets nearly everything through at once.
func NewEvent(method, resource string) Event {
	return Event{
		Method: method, Resource: resource, RequestID: string(ids.New[ids.Job]()),
		Stage: map[string]string{"deleteRatePerMinute": "1000000", "deleteBurst": "100000"},
	}
}

// As is the event sent with this API key.
func (e Event) As(token string) Event { return e.With("Authorization", "Bearer "+token) }

// With is the event with these values of a header.
func (e Event) With(header string, values ...string) Event {
	e.Header = with(e.Header, header, values)
	return e
}

// At is the event with this parameter of the path.
func (e Event) At(name, value string) Event {
	e.Path = with(e.Path, name, value)
	return e
}

// Asking is the event with these values of a query parameter.
func (e Event) Asking(name string, values ...string) Event {
	e.Query = with(e.Query, name, values)
	return e
}

// Limited is the event under this rate of deletions.
func (e Event) Limited(perMinute, burst string) Event {
	e.Stage = map[string]string{"deleteRatePerMinute": perMinute, "deleteBurst": burst}
	return e
}

// Sending is the event with this value, as JSON, for a body.
func (e Event) Sending(body any) Event {
	encoded, err := json.Marshal(body)
	if err != nil {
		// Bodies of tests are text and numbers; a mistake shows as a 400.
		encoded = []byte(err.Error())
	}
	e.Body = string(encoded)
	return e.With("Content-Type", "application/json")
}

// Again is the same request, sent once more: the gateway gives it another id.
func (e Event) Again() Event {
	e.RequestID = string(ids.New[ids.Job]())
	return e
}

func with[V any](m map[string]V, name string, value V) map[string]V {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]V{}
	}
	m[name] = value
	return m
}

// payload is the proxy event, payload format 1.0, with noise around what the
// test says: markers wherever a function has no business to look.
func (e Event) payload() []byte {
	header := maps.Clone(e.Header)
	if header == nil {
		header = map[string][]string{}
	}
	for _, name := range []string{"User-Agent", "Cookie", "X-Request-Id", "X-Api-Key"} {
		header[name] = []string{Marker + name}
	}
	query := maps.Clone(e.Query)
	if query == nil {
		query = map[string][]string{}
	}
	query["token"] = []string{Marker + "query"}
	var body any
	if e.Body != "" {
		body = e.Body
	}
	// Text and maps of text always encode.
	encoded, _ := json.Marshal(map[string]any{
		"resource": e.Resource, "path": "/" + Marker + "path", "httpMethod": e.Method,
		"headers": first(header), "multiValueHeaders": header,
		"queryStringParameters": first(query), "multiValueQueryStringParameters": query,
		"pathParameters": e.Path, "stageVariables": e.Stage,
		"requestContext": map[string]any{
			"requestId": e.RequestID, "httpMethod": e.Method, "resourcePath": e.Resource, "stage": "live",
			"identity": map[string]any{"sourceIp": "192.0.2.1", "userAgent": Marker + "agent"},
		},
		"body": body, "isBase64Encoded": false,
	})
	return encoded
}

// first is the map of single values that a gateway sends beside all of them.
func first(all map[string][]string) map[string]string {
	single := map[string]string{}
	for name, values := range all {
		if len(values) > 0 {
			single[name] = values[len(values)-1]
		}
	}
	return single
}
