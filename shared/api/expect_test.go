package api_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"signalbox.dev/shared/auth"
)

// eventSeeds are events that differ in what decides the response, and malformed ones.
func eventSeeds() []string {
	event := func(header, rest string) string {
		return fmt.Sprintf(`{"resource":%q,"httpMethod":"GET","multiValueHeaders":{%s},"requestContext":{"requestId":"r-1","identity":{"sourceIp":"192.0.2.1"}}%s}`, resource, header, rest)
	}
	key := `"Authorization":["Bearer ` + standardToken + `"]`
	return []string{
		event(key, `,"body":"{\"key\":\"`+leaked+`\"}","isBase64Encoded":false`),
		event(key, `,"body":"`+base64.StdEncoding.EncodeToString([]byte(`{"key":"x"}`))+`","isBase64Encoded":true`),
		event(key, `,"body":"`+leaked+`!","isBase64Encoded":true`),
		event(key, `,"pathParameters":{"id":"panic `+leaked+`"},"queryStringParameters":{"token":"`+leaked+`"}`),
		event(key, `,"stageVariables":{"rate":60},"body":null`),
		event(`"authorization":["Bearer `+leaked+`"]`, ""),
		event(`"Authorization":["Bearer a","Bearer b"]`, ""),
		event(key+`,"authorization":["Bearer `+standardToken+`"]`, ""),
		event(`"Authorization":["Basic `+leaked+`"]`, ""),
		event(`"Authorization":["bearer  `+failingToken+`"]`, ""),
		event(`"Authorization":["BEARER `+corruptToken+`"]`, ""),
		event(`"Authorization":[]`, `,"headers":{"Authorization":"Bearer `+standardToken+`"}`),
		event("", ""),
		event("", `,"headers":{"Authorization":"Bearer `+standardToken+`"}`),
		`{"resource":"` + resource + `","httpMethod":"GET","headers":{"AUTHORIZATION":"Bearer ` + managementToken + `"}}`,
		strings.Replace(event(key, ""), `"GET"`, `"POST"`, 1), strings.Replace(event(key, ""), "things", "others", 1),
		event(key, `,"body":"{\"key\":\"\ud800\"}"`), event(key, ",\"body\":\"{\\\"key\\\":\\\"\xff\\\"}\""),
		`{"resource":"/{proxy+}","httpMethod":"POST","path":"/` + leaked + `"}`,
		`{"resource":1,"body":"` + leaked + `"}`, `{"requestContext":null,"headers":null}`, `{"stageVariables":{"a":null}}`,
		`"x"`, `{"body":{"body":"` + leaked + `"}}`, `{"headers":1}`, `{"multiValueHeaders":["` + leaked + `"]}`,
		`{"requestContext":{"requestId":"r-1","requestId":"r-2"}}`, `{"requestContext":[{"requestId":"x"}],"requestId":"x"}`,
		`{"requestContext":{"requestId":1,"identity":{"sourceIp":"192.0.2.1"}}}`, `{"requestContext":"x","a":"b","requestId":"y"}`,
		event(key, `,"body":"x","body":null`), event(key, `,"isBase64Encoded":true,"isBase64Encoded":false`), event(key, `,"isBase64Encoded":"true"`),
		event(key, `,"httpMethod":"GET"`), event(key, `,"resource":"b"`), event(key, `,"pathParameters":[]`), event(key, `,"requestContext":null`),
		event(key, `,"requestContext":{"requestId":"r-2"}`), event(key, `,"stageVariables":true`), event(key, `,"multiValueHeaders":"`+leaked+`"`),
		`{"body":"\ud800","headers":{"Authorization":"` + "\xff" + `"}}`, `{"body":"a","body":"b"}`, `[]`, `null`, ``,
	}
}

// rawEvent is a random event as text, with duplicate, invalid and very long names,
// values of any type, and duplicate members, which Go's maps cannot have.
func rawEvent(r *rand.Rand) []byte {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	value := func() string {
		return pick(`"Bearer `+standardToken+`"`, `"Bearer `+leaked+`"`, `"panic"`, `"x"`, `""`, "\"\xff\"", `"\udc00"`, `60`, `true`, `null`, `{"a":1,"a":2}`, `[["x"]]`)
	}
	object := func(names ...string) string {
		names = append(names, "\xff", "\xfe", `\ud800`, "\ufffd", "x", "X", strings.Repeat("long", 5000))
		var text []string
		for range r.IntN(5) {
			v := value()
			if r.IntN(2) == 0 {
				v = "[" + strings.Join([]string{v, value()}[r.IntN(2):], ",") + "]"
			}
			text = append(text, `"`+pick(names...)+`":`+v)
		}
		return "{" + strings.Join(text, ",") + "}"
	}
	var text []string
	for _, m := range [][]string{
		{"resource", `"` + resource + `"`},
		{"httpMethod", `"GET"`},
		{"multiValueHeaders", object("Authorization", "authorization", "AUTHORIZATION"), `{"Authorization":["Bearer ` + standardToken + `"]}`, "null"},
		{"headers", object("Authorization", "authorization"), "null"},
		{"multiValueQueryStringParameters", object("workspace_id"), "null"},
		{"queryStringParameters", object("workspace_id"), "null"},
		{"pathParameters", object("id"), `{"id":"x"}`},
		{"stageVariables", object("rate"), `{"rate":60}`},
		{"body", `"{\"key\":\"` + leaked + `\"}"`, "null"},
		{"isBase64Encoded", "false"},
		{"requestContext", `{"requestId":"r-1","identity":{"sourceIp":"192.0.2.1"}}`},
	} {
		given := pick(m[1:]...)
		switch r.IntN(60) {
		case 0:
			text = append(text, `"`+m[0]+`":`+pick(m[1:]...))
		case 1:
			given = pick("1", `"`+leaked+`"`, "[]", "true")
		}
		text = append(text, `"`+m[0]+`":`+given)
	}
	r.Shuffle(len(text), func(i, j int) { text[i], text[j] = text[j], text[i] })
	return []byte("{" + strings.Join(text, ",") + "}")
}

// object is a JSON object with its members in order, duplicate ones too.
type object []struct {
	name  string
	value any
}

// all is every value of the member.
func (o object) all(name string) (values []any) {
	for _, m := range o {
		if m.name == name {
			values = append(values, m.value)
		}
	}
	return values
}

// expect is the response that infra/openapi.yaml requires, from an independent
// reading with encoding/json. Of a payload that is not JSON it is only the status.
func expect(payload []byte) outcome {
	want := outcome{Status: http.StatusInternalServerError}
	if !json.Valid(payload) {
		return want
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber() // they may be of any size
	v := parse(d)
	e, ok := v.(object)
	for _, context := range e.all("requestContext") {
		context, _ := context.(object)
		for _, id := range context.all("requestId") {
			if id, _ := id.(string); want.RequestID == "" {
				want.RequestID = id
			}
		}
	}
	if (ok || v == nil) && typed(e) { // null leaves every member absent
		want.Status, want.Reason = decide(e)
	}
	return want
}

// parse reads a value that is known to be JSON.
func parse(d *json.Decoder) any {
	token, _ := d.Token()
	if token != json.Delim('{') && token != json.Delim('[') {
		return token
	}
	var members object
	for d.More() {
		var name string
		if token == json.Delim('{') {
			key, _ := d.Token()
			name = key.(string)
		}
		members = append(members, object{{name, parse(d)}}...)
	}
	_, _ = d.Token() // the closing bracket
	if token == json.Delim('[') {
		return members.all("")
	}
	return append(object{}, members...)
}

// typed reports whether the members that decide are not duplicate, and null or of
// the type in API Gateway's documentation.
func typed(e object) bool {
	context, _ := one(e, "requestContext").(object)
	identity, _ := one(context, "identity").(object)
	for _, member := range []struct {
		values []any
		is     func(any) bool
	}{
		{e.all("resource"), is[string]}, {e.all("httpMethod"), is[string]}, {e.all("body"), is[string]},
		{e.all("isBase64Encoded"), is[bool]}, {e.all("requestContext"), is[object]},
		{context.all("requestId"), is[string]}, {context.all("identity"), is[object]}, {identity.all("sourceIp"), is[string]},
	} {
		if len(member.values) > 1 || !every(member.values, member.is) {
			return false
		}
	}
	for _, name := range []string{"headers", "multiValueHeaders", "queryStringParameters", "multiValueQueryStringParameters", "pathParameters", "stageVariables"} {
		if !every(e.all(name), is[object]) {
			return false
		}
	}
	return true
}

func is[T any](v any) bool { _, ok := v.(T); return ok || v == nil }

func every(values []any, is func(any) bool) bool {
	return !slices.ContainsFunc(values, func(v any) bool { return !is(v) })
}

func one(o object, name string) any {
	values := o.all(name)
	if len(values) != 1 {
		return nil
	}
	return values[0]
}

// merged is the members of every map of the event under that name.
func merged(e object, name string) (all object, found bool) {
	for _, v := range e.all(name) {
		o, ok := v.(object)
		all, found = append(all, o...), found || ok
	}
	return all, found
}

// texts are the values of a member of a map.
func texts(v any) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		var all []string
		for _, element := range v {
			if _, nested := element.([]any); nested || element == nil {
				element = ""
			}
			all = append(all, texts(element)...)
		}
		return all
	case object:
		return []string{""}
	default:
		return []string{fmt.Sprint(v)}
	}
}

// decide checks the route, then the key.
func decide(e object) (status int, reason string) {
	body, _ := one(e, "body").(string)
	if _, err := base64.StdEncoding.DecodeString(body); one(e, "isBase64Encoded") == true && err != nil {
		return http.StatusInternalServerError, ""
	}
	if one(e, "httpMethod") != http.MethodGet || one(e, "resource") != resource {
		return http.StatusNotFound, ""
	}
	given := authorizations(e)
	if len(given) == 0 {
		return http.StatusUnauthorized, string(auth.Missing)
	}
	token := regexp.MustCompile(`^(?i:bearer) +([A-Za-z0-9._~+/-]+=*)$`).FindStringSubmatch(given[0])
	if len(given) > 1 || token == nil || len(token[1]) > 256 {
		return http.StatusUnauthorized, string(auth.Malformed)
	}
	path, _ := merged(e, "pathParameters")
	var ids []string
	for _, v := range path.all("id") {
		ids = append(ids, texts(v)...)
	}
	switch {
	case token[1] == failingToken:
		return http.StatusInternalServerError, ""
	case token[1] != managementToken && token[1] != standardToken:
		return http.StatusUnauthorized, string(auth.UnknownKey)
	case len(ids) == 1 && strings.HasPrefix(ids[0], "panic"):
		return http.StatusInternalServerError, ""
	}
	return http.StatusOK, ""
}

// authorizations are the values of that header: those of the map with all
// values, or else of the other, where one without a value counts as empty.
func authorizations(e object) (given []string) {
	headers, multi := merged(e, "multiValueHeaders")
	if !multi {
		headers, _ = merged(e, "headers")
	}
	for _, m := range headers {
		if !strings.EqualFold(m.name, "authorization") {
			continue
		}
		values := texts(m.value)
		if len(values) == 0 && !multi {
			values = []string{""}
		}
		given = append(given, values...)
	}
	return given
}
