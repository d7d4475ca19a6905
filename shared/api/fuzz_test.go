package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
)

// leaked stands for a secret in the seeds: in the token, the body, the path.
const leaked = "sk-leaked-0123456789"

// eventSeeds are events that differ in every value that decides the response, and
// malformed ones.
func eventSeeds() []string {
	event := func(header, rest string) string {
		const context = `{"requestId":"r-1","identity":{"sourceIp":"192.0.2.1"}}`
		return fmt.Sprintf(`{"resource":%q,"httpMethod":"GET","multiValueHeaders":{%s},"requestContext":%s%s}`, resource, header, context, rest)
	}
	key := `"Authorization":["Bearer ` + standardToken + `"]`
	return []string{
		event(key, `,"body":"{\"key\":\"`+leaked+`\"}","isBase64Encoded":false`),
		event(key, `,"body":"`+base64.StdEncoding.EncodeToString([]byte(`{"key":"x"}`))+`","isBase64Encoded":true`),
		event(key, `,"body":"`+leaked+`!","isBase64Encoded":true`),
		event(key, `,"pathParameters":{"id":"panic `+leaked+`"},"queryStringParameters":{"token":"`+leaked+`"}`),
		event(key, `,"pathParameters":{"id":["panic"]}`), event(key, `,"pathParameters":{"id":["panic","x"]}`),
		event(key, `,"stageVariables":{"rate":60},"body":null`),
		event(`"authorization":["Bearer `+leaked+`"]`, ""),
		event(`"Authorization":["Bearer a","Bearer b"]`, ""),
		event(key+`,"authorization":["Bearer `+standardToken+`"]`, ""),
		event(`"Authorization":["Basic `+leaked+`"]`, ""),
		event(`"Authorization":["bearer  `+failingToken+`"]`, ""),
		event(`"Authorization":["BEARER `+corruptToken+`"]`, ""),
		event(`"Authorization":[]`, `,"headers":{"Authorization":"Bearer `+standardToken+`"}`),
		event("", ""), event(`"Authorization":[null,["x"]]`, ""), event(`"Authorization":{"a":1}`, ""), event(`"Authorization":true`, ""),
		event("", `,"headers":{"Authorization":"Bearer `+standardToken+`"}`),
		`{"resource":"` + resource + `","httpMethod":"GET","multiValueHeaders":null,` +
			`"headers":{"AUTHORIZATION":"Bearer ` + managementToken + `"}}`,
		`{"resource":"` + resource + `","httpMethod":"GET","headers":{"Authorization":null}}`,
		strings.Replace(event(key, ""), `"GET"`, `"POST"`, 1), strings.Replace(event(key, ""), "things", "others", 1),
		event(key, `,"body":"{\"key\":\"\ud800\"}"`), event(key, ",\"body\":\"{\\\"key\\\":\\\"\xff\\\"}\""),
		`{"resource":"/{proxy+}","httpMethod":"POST","path":"/` + leaked + `"}`,
		`{"resource":1,"body":"` + leaked + `"}`, `{"requestContext":null,"headers":null}`, `{"stageVariables":{"a":null}}`,
		`"x"`, `{"body":{"body":"` + leaked + `"}}`, `{"headers":1}`, `{"multiValueHeaders":["` + leaked + `"]}`,
		`{"requestContext":{"requestId":1,"identity":{"sourceIp":"192.0.2.1"}}}`, `{"requestContext":"x","a":"b","requestId":"y"}`,
		`{"requestContext":{"identity":{"sourceIp":1}}}`, `{"requestContext":{"identity":true}}`,
		`{"isBase64Encoded":"true"}`, `{"httpMethod":[]}`, `{5:1}`, `{"a":`, `{"a"`,
		`{"queryStringParameters":"a"}`, `{"multiValueQueryStringParameters":[]}`, `{"pathParameters":[]}`, `{"stageVariables":true}`,
		event(key, `,"body":"x","body":null`), event(key, `,"requestContext":{"requestId":"r-2"}`),
		`{"body":"\ud800","headers":{"Authorization":"` + "\xff" + `"}}`, `[]`, `null`, ``,
	}
}

// For any payload the response is one of a proxy integration, in the envelope, and
// neither it nor the log contains a secret. Where no name is duplicate, status,
// reason and request id are those of an independent reading.
func FuzzHandler(f *testing.F) {
	for _, seed := range eventSeeds() {
		f.Add([]byte(seed))
	}
	op := reading(func(r *api.Request) {
		_ = []any{r.Query("workspace_id"), r.Header("X"), r.StageVariable("rate"), r.Bearer(), r.Object("key", "provider").Issues()}
		if id := r.Path("id"); strings.HasPrefix(id, "panic") {
			panic(id)
		}
	})
	f.Fuzz(func(t *testing.T, payload []byte) {
		out, log := invoke(t, op, payload)
		answer := functest.ReadAnswer(t, out, log)
		got := outcome{answer.Status, answer.Reason, answer.RequestID}
		if want, ok := expect(payload); ok && got != want || !ok && !json.Valid(payload) && got.Status != http.StatusInternalServerError {
			t.Errorf("%.2000q\nanswered %+v, want %+v", payload, got, want)
		}
		if written := string(out) + log; !strings.Contains(got.RequestID, leaked) && strings.Contains(written, leaked) {
			t.Errorf("a secret is repeated: %s", written)
		}
	})
}

// outcome is the part of a response that is compared.
type outcome struct {
	Status            int
	Reason, RequestID string
}

// expect is the response that infra/openapi.yaml requires, read with encoding/json.
// There is none for a payload that has two readings: see TestMapsOfAnEvent and
// TestTheRequestIDOfAMalformedEvent.
func expect(payload []byte) (want outcome, ok bool) {
	if !jsontext.Value(payload).IsValid() {
		return outcome{}, false
	}
	var e any
	d := json.NewDecoder(strings.NewReader(string(payload)))
	d.UseNumber() // they may be of any size
	_ = d.Decode(&e)
	context, _ := at(e, "requestContext").(map[string]any)
	want.RequestID, _ = context["requestId"].(string)
	want.Status = http.StatusInternalServerError
	if typed(e) {
		want.Status, want.Reason = decide(e)
	}
	return want, true
}

// at is a member of an object, or nil.
func at(v any, name string) any {
	object, _ := v.(map[string]any)
	return object[name]
}

// typed reports whether every value that decides is null or has the type in API
// Gateway's documentation.
func typed(e any) bool {
	identity := at(at(e, "requestContext"), "identity")
	object := is[map[string]any](e) && is[map[string]any](at(e, "requestContext")) && is[map[string]any](identity)
	for _, name := range []string{
		"headers", "multiValueHeaders", "queryStringParameters", "multiValueQueryStringParameters", "pathParameters", "stageVariables",
	} {
		object = object && is[map[string]any](at(e, name))
	}
	return object && is[string](at(e, "resource")) && is[string](at(e, "httpMethod")) && is[string](at(e, "body")) &&
		is[bool](at(e, "isBase64Encoded")) && is[string](at(at(e, "requestContext"), "requestId")) && is[string](at(identity, "sourceIp"))
}

func is[T any](v any) bool { _, ok := v.(T); return ok || v == nil }

// decide checks the route, then the key.
func decide(e any) (status int, reason string) {
	body, _ := at(e, "body").(string)
	if _, err := base64.StdEncoding.DecodeString(body); at(e, "isBase64Encoded") == true && err != nil {
		return http.StatusInternalServerError, ""
	}
	if at(e, "httpMethod") != http.MethodGet || at(e, "resource") != resource {
		return http.StatusNotFound, ""
	}
	headers, multi := at(e, "multiValueHeaders").(map[string]any)
	if !multi {
		headers, _ = at(e, "headers").(map[string]any)
	}
	var given []string
	for name, value := range headers {
		if !strings.EqualFold(name, "authorization") {
			continue
		}
		if values := texts(value); len(values) > 0 || multi {
			given = append(given, values...)
		} else {
			given = append(given, "")
		}
	}
	if len(given) == 0 {
		return http.StatusUnauthorized, string(auth.Missing)
	}
	token := regexp.MustCompile(`^(?i:bearer) +([A-Za-z0-9._~+/-]+=*)$`).FindStringSubmatch(given[0])
	if len(given) > 1 || token == nil || len(token[1]) > 256 {
		return http.StatusUnauthorized, string(auth.Malformed)
	}
	ids := texts(at(at(e, "pathParameters"), "id"))
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

// texts are the values of a member of a map: nested and null ones are empty.
func texts(v any) (all []string) {
	values, many := v.([]any)
	if !many && v != nil {
		values = []any{v}
	}
	for _, value := range values {
		switch value.(type) {
		case string, json.Number, bool:
			all = append(all, fmt.Sprint(value))
		default:
			all = append(all, "")
		}
	}
	return all
}
