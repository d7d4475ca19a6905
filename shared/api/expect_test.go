package api_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"signalbox.dev/shared/auth"
)

// eventSeeds are events that differ in what is decided by, and what is no event.
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
		`{"resource":"/{proxy+}","httpMethod":"POST","path":"/` + leaked + `"}`,
		`{"resource":1,"body":"` + leaked + `"}`, `{"requestContext":null,"headers":null}`, `{"stageVariables":{"a":null}}`,
		`{"body":"\ud800","headers":{"Authorization":"` + "\xff" + `"}}`, `{"body":"a","body":"b"}`, `[]`, `null`, ``,
	}
}

// expect reads an event anew, with encoding/json, and tells what the contract
// makes of it. ok is false where readers may differ: text that is not Unicode,
// and members that come twice.
func expect(payload []byte) (want outcome, ok bool) {
	internal := outcome{Status: http.StatusInternalServerError}
	if !json.Valid(payload) {
		return internal, utf8.Valid(payload) && !bytes.Contains(payload, []byte(`\u`))
	}
	if !utf8.Valid(payload) || !plain(numbered(payload)) {
		return outcome{}, false
	}
	var v any
	if err := numbered(payload).Decode(&v); err != nil {
		return outcome{}, false
	}
	if v == nil {
		v = map[string]any{} // null leaves every member absent
	}
	e, ok := v.(map[string]any)
	if !ok || !typed(e) {
		return internal, true
	}
	context, _ := e["requestContext"].(map[string]any)
	want.RequestID, _ = context["requestId"].(string)
	want.Status, want.Reason = decide(e)
	return want, true
}

// numbered reads numbers as they are written: they may be of any size.
func numbered(payload []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	return d
}

// plain reads a value to its end and reports whether no object in it has a member
// twice and no text holds U+FFFD, as half a surrogate pair reads.
func plain(d *json.Decoder) bool {
	token, _ := d.Token() // the value is known to be JSON
	if text, ok := token.(string); ok {
		return !strings.ContainsRune(text, utf8.RuneError)
	}
	if token != json.Delim('{') && token != json.Delim('[') {
		return true
	}
	whole, seen := true, map[json.Token]bool{}
	for d.More() {
		if token == json.Delim('{') {
			name, _ := d.Token()
			whole = whole && !seen[name] && !strings.ContainsRune(name.(string), utf8.RuneError)
			seen[name] = true
		}
		whole = plain(d) && whole
	}
	_, _ = d.Token() // the closing bracket
	return whole
}

// typed reports whether what is read of an event is of the types that API
// Gateway's documentation gives, or null.
func typed(e map[string]any) bool {
	context, _ := e["requestContext"].(map[string]any)
	identity, _ := context["identity"].(map[string]any)
	textMap, textListMap := objectOf(isText), objectOf(isTexts)
	for _, member := range []struct {
		value any
		is    func(any) bool
	}{
		{e["resource"], isText}, {e["httpMethod"], isText}, {e["body"], isText},
		{e["headers"], textMap}, {e["queryStringParameters"], textMap}, {e["pathParameters"], textMap},
		{e["multiValueHeaders"], textListMap}, {e["multiValueQueryStringParameters"], textListMap},
		{e["stageVariables"], objectOf(isSetting)},
		{e["isBase64Encoded"], func(v any) bool { _, ok := v.(bool); return ok }},
		{e["requestContext"], objectOf(isAnything)}, {context["requestId"], isText},
		{context["identity"], objectOf(isAnything)}, {identity["sourceIp"], isText},
	} {
		if member.value != nil && !member.is(member.value) {
			return false
		}
	}
	return true
}

func isAnything(any) bool { return true }

func isText(v any) bool { _, ok := v.(string); return ok || v == nil }

func isTexts(v any) bool {
	list, ok := v.([]any)
	return (ok || v == nil) && !slices.ContainsFunc(list, func(v any) bool { return !isText(v) })
}

// isSetting is what a stage variable is: text, or a number from `sam local`.
func isSetting(v any) bool {
	_, number := v.(json.Number)
	return number || v != nil && isText(v)
}

func objectOf(is func(any) bool) func(any) bool {
	return func(v any) bool {
		object, ok := v.(map[string]any)
		for _, value := range object {
			ok = ok && is(value)
		}
		return ok
	}
}

// decide is the contract's order: the route, then the key.
func decide(e map[string]any) (status int, reason string) {
	body, _ := e["body"].(string)
	if _, err := base64.StdEncoding.DecodeString(body); e["isBase64Encoded"] == true && err != nil {
		return http.StatusInternalServerError, ""
	}
	if e["httpMethod"] != http.MethodGet || e["resource"] != resource {
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
	path, _ := e["pathParameters"].(map[string]any)
	id, _ := path["id"].(string)
	switch {
	case token[1] == failingToken:
		return http.StatusInternalServerError, ""
	case token[1] != managementToken && token[1] != standardToken:
		return http.StatusUnauthorized, string(auth.UnknownKey)
	case strings.HasPrefix(id, "panic"):
		return http.StatusInternalServerError, ""
	}
	return http.StatusOK, ""
}

// authorizations are the values of that header, null among them as empty text:
// those of the map with all values, or else of the other.
func authorizations(e map[string]any) (given []string) {
	headers, ok := e["multiValueHeaders"].(map[string]any)
	if !ok {
		headers, _ = e["headers"].(map[string]any)
	}
	for name, value := range headers {
		if !strings.EqualFold(name, "authorization") {
			continue
		}
		values, isList := value.([]any)
		if !isList && (!ok || value != nil) {
			values = []any{value}
		}
		for _, v := range values {
			text, _ := v.(string)
			given = append(given, text)
		}
	}
	return given
}
