package api

import (
	"bytes"
	"encoding/base64"
	"errors"
	"maps"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"signalbox.dev/shared/secret"
)

// event is the part of a REST API's proxy event (payload format 1.0) that is used.
// See API Gateway's developer guide, "Input format of a Lambda function for proxy
// integration".
type event struct {
	Resource        once[string]         `json:"resource"`
	Method          once[string]         `json:"httpMethod"`
	Header          members              `json:"headers"`
	MultiHeader     members              `json:"multiValueHeaders"`
	Query           members              `json:"queryStringParameters"`
	MultiQuery      members              `json:"multiValueQueryStringParameters"`
	Path            members              `json:"pathParameters"`
	StageVariables  members              `json:"stageVariables"`
	Body            once[text]           `json:"body"`
	IsBase64Encoded once[bool]           `json:"isBase64Encoded"`
	Context         once[requestContext] `json:"requestContext"`
}

type requestContext struct {
	RequestID once[string]   `json:"requestId"`
	Identity  once[identity] `json:"identity"`
}

type identity struct {
	SourceIP once[string] `json:"sourceIp"`
}

// lenient accepts invalid UTF-8, which reads as U+FFFD and is checked with the
// request, and duplicate names, which once and members handle.
var lenient = []json.Options{jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)}

var (
	errEvent    = errors.New("not a REST API proxy event")
	errRepeated = errors.New("duplicate member")
)

// once is a member that must not be duplicate: the event could be read in two
// ways, so it is refused.
type once[T any] struct {
	value T
	found bool
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (o *once[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if o.found {
		return errRepeated
	}
	o.found = true
	return json.UnmarshalDecode(d, &o.value)
}

// text is a JSON string read as bytes, which can be overwritten after use.
type text []byte

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (t *text) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	if value.Kind() == jsontext.KindNull {
		return nil
	}
	if value.Kind() != jsontext.KindString {
		return errors.New("neither a string nor null")
	}
	*t = unescaped(value)
	return nil
}

// members is a map of the event in its order, nil where it is absent or null. Its
// names may be duplicate: a gateway decodes distinct bytes to U+FFFD.
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
	return readObject(d, func(name string) error {
		values, err := readValues(d)
		*m = append(*m, member{name, values})
		return err
	})
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

// readObject calls read for each member of the object that comes next, with the
// decoder before the member's value.
func readObject(d *jsontext.Decoder, read func(name string) error) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := read(name.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// readValues reads the values of one name, of whatever type they are.
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
		unquoted, _ := jsontext.AppendUnquote(nil, value) // as for text
		return string(unquoted), err
	}
	if kind == jsontext.KindNumber || kind == jsontext.KindTrue || kind == jsontext.KindFalse {
		return string(value), err
	}
	return "", err
}

// readRequest reads the event. Its error repeats nothing of it; the request it
// returns can be logged even then.
func readRequest(payload []byte) (*Request, error) {
	var e event
	if err := json.Unmarshal(payload, &e, lenient...); err != nil {
		clear(e.Body.value)
		return &Request{id: findRequestID(payload)}, errEvent
	}
	r := &Request{
		id: e.Context.value.RequestID.value, sourceIP: e.Context.value.Identity.value.SourceIP.value,
		method: e.Method.value, resource: e.Resource.value,
		path: e.Path, stage: e.StageVariables,
		query: map[string][]string{}, header: http.Header{},
		body: secret.New(e.Body.value),
	}
	for _, m := range choose(e.MultiQuery, e.Query) {
		r.query[m.name] = append(r.query[m.name], m.values...)
	}
	for _, m := range choose(e.MultiHeader, e.Header) {
		name := http.CanonicalHeaderKey(m.name)
		r.header[name] = append(r.header[name], m.values...)
	}
	if e.IsBase64Encoded.value {
		decoded, err := base64.StdEncoding.AppendDecode(nil, e.Body.value)
		clear(e.Body.value)
		if err != nil {
			clear(decoded)
			return r, errEvent
		}
		r.body = secret.New(decoded)
	}
	return r, nil
}

// choose prefers the map with all values. A test event from the console may have
// only the other one, in which null is an empty value.
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

// findRequestID returns the first request id of an unreadable event that is a
// string. After a syntax error, or an object with data after it, it continues at the
// next requestContext, which it makes the first member of an object in place.
func findRequestID(payload []byte) (id string) {
	context := []byte(`"requestContext"`)
	for {
		d := jsontext.NewDecoder(bytes.NewBuffer(payload), lenient...) // parses in place
		// An error is one of syntax.
		_ = readMember(d, "requestContext", func() error {
			return readMember(d, "requestId", func() error {
				value, err := d.ReadValue()
				if id == "" {
					unquoted, _ := jsontext.AppendUnquote(nil, value) // nothing where it is no string
					id = string(unquoted)
				}
				return err
			})
		})
		next := bytes.Index(payload[min(1+int(d.InputOffset()), len(payload)):], context)
		if next < 0 {
			return id
		}
		payload = payload[int(d.InputOffset())+next:]
		payload[0] = '{'
	}
}

// readMember skips a value, except for this member of it.
func readMember(d *jsontext.Decoder, wanted string, read func() error) error {
	if d.PeekKind() != jsontext.KindBeginObject {
		return d.SkipValue()
	}
	return readObject(d, func(name string) error {
		if name != wanted {
			return d.SkipValue()
		}
		return read()
	})
}

// answer is what a proxy integration returns to the gateway.
type answer struct {
	StatusCode      int               `json:"statusCode"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

// encodeAnswer encodes the response with the headers that every response has.
func encodeAnswer(r Response, requestID string) []byte {
	header := map[string]string{"X-Request-Id": requestID, "Cache-Control": "no-store"}
	if len(r.Body) > 0 {
		header["Content-Type"] = "application/json"
	}
	maps.Copy(header, r.Header)
	return JSON(answer{StatusCode: r.Status, Headers: header, Body: string(r.Body)})
}

// JSON encodes a body, the same value to the same bytes each time. Bodies are
// structs of text, numbers, booleans, lists and maps of these, which always
// encode.
func JSON(v any) []byte {
	encoded, _ := json.Marshal(v,
		json.Deterministic(true), json.FormatNilSliceAsNull(true), jsontext.AllowInvalidUTF8(true))
	return encoded
}
