package api

import (
	"encoding/base64"
	"errors"
	"maps"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"signalbox.dev/shared/secret"
)

// readRequest reads the event. Its error repeats nothing from the event. The request
// can be logged even with an error.
func readRequest(payload []byte) (*Request, error) {
	e, err := readEvent(payload)
	if err != nil {
		return &Request{id: e.Context.RequestID}, err
	}
	r := &Request{
		id: e.Context.RequestID, sourceIP: e.Context.Identity.SourceIP, method: e.Method, resource: e.Resource,
		path: e.Path, stage: e.Stage, query: map[string][]string{}, header: http.Header{},
		body: secret.New(e.Body),
	}
	for _, m := range choose(e.MultiQuery, e.Query) {
		r.query[m.name] = append(r.query[m.name], m.values...)
	}
	for _, m := range choose(e.MultiHeader, e.Header) {
		name := http.CanonicalHeaderKey(m.name)
		r.header[name] = append(r.header[name], m.values...)
	}
	if e.IsBase64Encoded {
		decoded, err := base64.StdEncoding.AppendDecode(nil, e.Body)
		clear(e.Body)
		if err != nil {
			clear(decoded)
			return r, errEvent
		}
		r.body = secret.New(decoded)
	}
	return r, nil
}

// choose prefers the map with all values. A test event from the console may have only
// the other map. In that map null is an empty value.
func choose(multi, single members) members {
	if multi != nil {
		return multi
	}
	for i, m := range single {
		if len(m.values) == 0 {
			single[i].values = []string{""}
		}
	}
	return single
}

// event is the part of a REST API's proxy event (payload format 1.0) that is used.
// See API Gateway's developer guide, "Input format of a Lambda function for proxy
// integration".
type event struct {
	Resource        string  `json:"resource"`
	Method          string  `json:"httpMethod"`
	Header          members `json:"headers"`
	MultiHeader     members `json:"multiValueHeaders"`
	Query           members `json:"queryStringParameters"`
	MultiQuery      members `json:"multiValueQueryStringParameters"`
	Path            members `json:"pathParameters"`
	Stage           members `json:"stageVariables"`
	Body            text    `json:"body"`
	IsBase64Encoded bool    `json:"isBase64Encoded"`
	Context         struct {
		RequestID string `json:"requestId"`
		Identity  struct {
			SourceIP string `json:"sourceIp"`
		} `json:"identity"`
	} `json:"requestContext"`
}

// lenient reads invalid UTF-8 and unpaired surrogates as U+FFFD, which no id and no text of a
// body may contain: one check finds them all. It accepts duplicate names. In an event the
// gateway may have made them, because it decodes different bytes to U+FFFD. In a body they are
// reported with the other issues.
var lenient = []jsontext.Options{jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)}

// errEvent replaces the decoder's error, which would quote the event.
var errEvent = errors.New("not a REST API proxy event")

// readEvent reads the event. The event has the request id even with an error, unless a
// syntax error comes before the id.
func readEvent(payload []byte) (event, error) {
	var e event
	if json.Unmarshal(payload, &e, lenient...) == nil {
		return e, nil
	}
	clear(e.Body)
	var named struct {
		Context struct {
			RequestID string `json:"requestId"`
		} `json:"requestContext"`
	}
	_ = json.Unmarshal(payload, &named, lenient...) // the error may come after the id
	e = event{}
	e.Context.RequestID = named.Context.RequestID
	return e, errEvent
}

// text is a JSON string read as bytes, which can be overwritten after use.
type text []byte

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (t *text) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	if kind := value.Kind(); kind != jsontext.KindNull && kind != jsontext.KindString {
		return errors.New("neither a string nor null")
	}
	*t = unquoted(value)
	return nil
}

// members is a map of the event in its order. It is nil if the map is absent or null.
type members []member

type member struct {
	name   string
	values []string // none for null and an empty array
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (m *members) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	kind := d.PeekKind()
	if kind == jsontext.KindNull {
		return d.SkipValue()
	}
	if kind != jsontext.KindBeginObject {
		return errors.New("neither an object nor null")
	}
	if *m == nil {
		*m = members{}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != jsontext.KindEndObject {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		values, err := readValues(d)
		if err != nil {
			return err
		}
		*m = append(*m, member{name, values})
	}
	_, err := d.ReadToken()
	return err
}

// single returns the value of a name that has exactly one, else "".
func (m members) single(name string) string {
	var found []string
	for _, member := range m {
		if member.name == name {
			found = append(found, member.values...)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// readValues reads the values of one name. They may be of any type.
func readValues(d *jsontext.Decoder) (values []string, err error) {
	kind := d.PeekKind()
	if kind == jsontext.KindNull {
		return nil, d.SkipValue()
	}
	if kind != jsontext.KindBeginArray {
		value, err := readText(d)
		return []string{value}, err
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != jsontext.KindEndArray {
		value, err := readText(d)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	_, err = d.ReadToken()
	return values, err
}

// readText reads a string, a number (which `sam local` sends for a stage variable)
// or a boolean as text, and any other value as "", which no operation accepts.
func readText(d *jsontext.Decoder) (string, error) {
	value, err := d.ReadValue()
	kind := value.Kind()
	if kind == jsontext.KindString {
		return string(unquoted(value)), err
	}
	if kind == jsontext.KindNumber || kind == jsontext.KindTrue || kind == jsontext.KindFalse {
		return string(value), err
	}
	return "", err
}

// gatewayResponse is the response of a proxy integration.
type gatewayResponse struct {
	StatusCode      int               `json:"statusCode"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

// encode adds the headers that every response has.
func encode(r Response, requestID string) []byte {
	header := map[string]string{
		"X-Request-Id": requestID, "Cache-Control": "no-store",
		"Strict-Transport-Security": "max-age=31536000", "X-Content-Type-Options": "nosniff",
	}
	if len(r.Body) > 0 {
		header["Content-Type"] = "application/json"
	}
	maps.Copy(header, r.Header)
	return JSON(gatewayResponse{StatusCode: r.Status, Headers: header, Body: string(r.Body)})
}

// JSON encodes a body, the same value to the same bytes each time. A body is a struct
// with text, numbers, booleans, lists and maps. It always encodes.
func JSON(body any) []byte {
	encoded, _ := json.Marshal(body,
		json.Deterministic(true), json.FormatNilSliceAsNull(true), jsontext.AllowInvalidUTF8(true))
	return encoded
}
