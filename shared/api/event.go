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

// event is the part of a REST API's proxy event (payload format 1.0) that is
// used. Source: API Gateway's developer guide, "Input format of a Lambda
// function for proxy integration".
type event struct {
	Resource        string              `json:"resource"`
	Method          string              `json:"httpMethod"`
	Header          map[string]string   `json:"headers"`
	MultiHeader     map[string][]string `json:"multiValueHeaders"`
	Query           map[string]string   `json:"queryStringParameters"`
	MultiQuery      map[string][]string `json:"multiValueQueryStringParameters"`
	Path            map[string]string   `json:"pathParameters"`
	StageVariables  map[string]setting  `json:"stageVariables"`
	Body            text                `json:"body"`
	IsBase64Encoded bool                `json:"isBase64Encoded"`
	Context         struct {
		RequestID string `json:"requestId"`
		Identity  struct {
			SourceIP string `json:"sourceIp"`
		} `json:"identity"`
	} `json:"requestContext"`
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
	// Its error can only be text that is not Unicode, which then reads as U+FFFD.
	*t, _ = jsontext.AppendUnquote(nil, value)
	return nil
}

// setting is a stage variable. API Gateway sends text; `sam local` sends a number
// where the template's parameter is one.
type setting string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (s *setting) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	if value.Kind() == jsontext.KindNumber {
		*s = setting(value)
		return nil
	}
	unquoted, err := jsontext.AppendUnquote(nil, value)
	*s = setting(unquoted)
	return err
}

var errEvent = errors.New("not a REST API proxy event")

// readRequest reads the event. Its error repeats nothing of it; the request it
// returns can be logged even then.
func readRequest(payload []byte) (*Request, error) {
	var e event
	// Text that a gateway mangled is judged where it stands, by the request's rules.
	if err := json.Unmarshal(payload, &e, jsontext.AllowInvalidUTF8(true)); err != nil {
		return &Request{}, errEvent
	}
	r := &Request{
		id: e.Context.RequestID, sourceIP: e.Context.Identity.SourceIP,
		method: e.Method, resource: e.Resource,
		path: e.Path, stage: e.StageVariables,
		query: values(e.MultiQuery, e.Query), header: http.Header{},
		body: secret.New(e.Body),
	}
	for name, given := range values(e.MultiHeader, e.Header) {
		name = http.CanonicalHeaderKey(name)
		r.header[name] = append(r.header[name], given...)
	}
	if e.IsBase64Encoded {
		decoded, err := base64.StdEncoding.AppendDecode(nil, e.Body)
		clear(e.Body)
		if err != nil {
			return r, errEvent
		}
		r.body = secret.New(decoded)
	}
	return r, nil
}

// values prefers the map with all values; a console's test event may have only
// the other.
func values(multi map[string][]string, single map[string]string) map[string][]string {
	if multi != nil {
		return multi
	}
	all := make(map[string][]string, len(single))
	for name, value := range single {
		all[name] = []string{value}
	}
	return all
}

// answer is what a proxy integration returns to the gateway.
type answer struct {
	StatusCode      int               `json:"statusCode"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

// encodeAnswer writes the answer with the headers that every answer has.
func encodeAnswer(r Response, requestID string) []byte {
	header := map[string]string{"X-Request-Id": requestID, "Cache-Control": "no-store"}
	if len(r.Body) > 0 {
		header["Content-Type"] = "application/json"
	}
	maps.Copy(header, r.Header)
	return JSON(answer{StatusCode: r.Status, Headers: header, Body: string(r.Body)})
}

// JSON encodes a wire type, the same value to the same bytes each time. Wire
// types are structs of text, numbers, booleans, lists and maps of these, which
// always encode.
func JSON(v any) []byte {
	encoded, _ := json.Marshal(v,
		json.Deterministic(true), json.FormatNilSliceAsNull(true), jsontext.AllowInvalidUTF8(true))
	return encoded
}
