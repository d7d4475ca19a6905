package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/api"
)

// leaked stands for a secret in an event: in the token, the body, the path.
const leaked = "sk-leaked-0123456789"

// events are events by the status and reason of their response. Some are malformed;
// the others differ in every value that decides.
func events() map[string][]string {
	event := func(headers, rest string) string {
		const context = `{"requestId":"r-1","identity":{"sourceIp":"192.0.2.1"}}`
		return fmt.Sprintf(`{"resource":%q,"httpMethod":"GET","multiValueHeaders":{%s},"requestContext":%s%s}`, resource, headers, context, rest)
	}
	bare := func(headers string) string {
		return fmt.Sprintf(`{"resource":%q,"httpMethod":"GET",%s}`, resource, headers)
	}
	const standard, key = `"Bearer ` + standardToken + `"`, `"Authorization":["Bearer ` + standardToken + `"]`
	all := map[string][]string{
		"200": {
			event(key, `,"body":"{\"key\":\"`+leaked+`\"}","isBase64Encoded":false`),
			event(key, `,"body":"`+base64.StdEncoding.EncodeToString([]byte(`{"key":"x"}`))+`","isBase64Encoded":true`),
			event(key, `,"pathParameters":{"id":["panic","x"]}`),
			event(key, `,"stageVariables":{"rate":60},"body":null`),
			event(key, `,"body":"{\"key\":\"\ud800\"}"`), event(key, ",\"body\":\"{\\\"key\\\":\\\"\xff\\\"}\""),
			bare(`"multiValueHeaders":null,"headers":{"AUTHORIZATION":"Bearer ` + managementToken + `"}`),
		},
		"401 missing": {
			event("", ""), event("", `,"headers":{"Authorization":`+standard+`}`),
			event(`"Authorization":[]`, `,"headers":{"Authorization":`+standard+`}`),
		},
		"401 malformed": {
			event(`"Authorization":["Bearer a","Bearer b"]`, ""), event(key+`,"authorization":[`+standard+`]`, ""),
			event(`"Authorization":["Basic `+leaked+`"]`, ""), event(`"Authorization":[null,["x"]]`, ""),
			event(`"Authorization":{"a":1}`, ""), event(`"Authorization":true`, ""), bare(`"headers":{"Authorization":null}`),
		},
		"401 unknown_key": {event(`"authorization":["Bearer `+leaked+`"]`, ""), event(`"Authorization":["BEARER `+corruptToken+`"]`, "")},
		"404": {
			strings.Replace(event(key, ""), `"GET"`, `"POST"`, 1), strings.Replace(event(key, ""), "things", "others", 1),
			`{"resource":"/{proxy+}","httpMethod":"POST","path":"/` + leaked + `"}`,
			`{"requestContext":null,"headers":null}`, `{"stageVariables":{"a":null}}`, `null`,
			`{"body":"\ud800","headers":{"Authorization":"` + "\xff" + `"}}`,
		},
		"500": {
			event(key, `,"body":"`+leaked+`!","isBase64Encoded":true`), event(`"Authorization":["bearer  `+failingToken+`"]`, ""),
			event(key, `,"pathParameters":{"id":"panic `+leaked+`"},"queryStringParameters":{"token":"`+leaked+`"}`),
			event(key, `,"pathParameters":{"id":["panic"]}`),
			`{"resource":1,"body":"` + leaked + `"}`, `"x"`, `{"body":{"body":"` + leaked + `"}}`,
			`{"headers":1}`, `{"multiValueHeaders":["` + leaked + `"]}`, `{"queryStringParameters":"a"}`,
			`{"multiValueQueryStringParameters":[]}`, `{"pathParameters":[]}`, `{"stageVariables":true}`,
			`{"requestContext":{"requestId":1,"identity":{"sourceIp":"192.0.2.1"}}}`, `{"requestContext":"x","a":"b","requestId":"y"}`,
			`{"requestContext":{"identity":{"sourceIp":1}}}`, `{"requestContext":{"identity":true}}`,
			`{"isBase64Encoded":"true"}`, `{"httpMethod":[]}`, `{5:1}`, `{"a":`, `{"a"`, `[]`, ``,
		},
	}
	// A part of an event is not JSON, or a field has the wrong type. The gateway writes the id
	// after most fields.
	known := `"requestContext":{"a":{"requestId":"x"},"requestId":"r-\u0031","identity":{"sourceIp":"192.0.2.1"}}`
	late := strings.Replace(known, `r-\u0031`, "r-late", 1)
	whole := `{"headers":{"requestId":"x"},"body":"` + leaked + `",` + known + `,"isBase64Encoded":false}`
	for end := range len(whole) {
		all["500"] = append(all["500"], whole[:end])
	}
	for _, malformed := range []string{`"a":01`, `"body":` + leaked, `"a":"\x"`, `"a"`, "\"a\":\"\n\"", `[`} {
		all["500"] = append(all["500"], `{`+malformed+`,`+late+`}`, `{`+known+`,`+malformed+`}`)
	}
	for _, wrong := range []string{`"resource":1`, `"headers":1`, `"multiValueHeaders":["x"]`, `"pathParameters":[]`, `"stageVariables":true`, `"body":{"a":[]}`} {
		all["500"] = append(all["500"], `{`+wrong+`,`+known+`,"body":"`+leaked+`","isBase64Encoded":false}`)
	}
	all["500"] = append(all["500"], `{`+known+`},{"a":1}`)
	return all
}

// examined is an operation that reads a request in every way.
func examined() api.Operation {
	return reading(func(r *api.Request) {
		_ = []any{r.Query("workspace_id"), r.Header("X"), r.StageVariable("rate"), r.Bearer(), r.Object("key", "provider").Issues()}
		if id := r.Path("id"); strings.HasPrefix(id, "panic") {
			panic(id)
		}
	})
}

// A response has the request id if the id comes before the fault.
func TestEvents(t *testing.T) {
	for want, payloads := range events() {
		for _, payload := range payloads {
			out, log := invoke(t, examined(), []byte(payload))
			got, id := functest.ReadAnswer(t, out, log), ""
			if strings.Contains(strings.Replace(payload, `\u0031`, "1", 1), `"requestId":"r-1"`) {
				id = "r-1"
			}
			if status := strings.TrimSpace(fmt.Sprint(got.Status, " ", got.Reason)); status != want || got.RequestID != id {
				t.Errorf("%.2000q\nanswered %s, request id %q; want %s, %q", payload, status, got.RequestID, want, id)
			}
		}
	}
}

// For any payload the response is a proxy integration's, in the envelope. Neither
// the response nor the log contains a secret. A payload that is not JSON is a 500.
func FuzzHandler(f *testing.F) {
	for _, payloads := range events() {
		for _, payload := range payloads {
			f.Add([]byte(payload))
		}
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		out, log := invoke(t, examined(), payload)
		got := functest.ReadAnswer(t, out, log)
		if !json.Valid(payload) && got.Status != http.StatusInternalServerError {
			t.Errorf("%.2000q: status %d", payload, got.Status)
		}
		if written := string(out) + log; !strings.Contains(got.RequestID, leaked) && strings.Contains(written, leaked) {
			t.Errorf("a secret is repeated: %s", written)
		}
	})
}

// A duplicate name in a map has all values in order. Two names in invalid UTF-8 are
// duplicates. Path parameters and stage variables have one value or none.
func TestMapsOfAnEvent(t *testing.T) {
	for _, c := range []struct {
		maps string // of the event
		want map[string][]string
	}{
		{`"multiValueQueryStringParameters":{"q":["a","b"],"x":["y"],"q":["c"]}`, map[string][]string{"query": {"a", "b", "c"}}},
		{`"queryStringParameters":{"q":"a","q":"b"}`, map[string][]string{"query": {"a", "b"}}},
		{`"queryStringParameters":{"q":null,"q":6e1,"q":true,"q":false,"q":{"q":"x"}}`, map[string][]string{"query": {"", "6e1", "true", "false", ""}}},
		{`"multiValueQueryStringParameters":{"q":null,"q":[],"q":"a","q":[null,["b"]]}`, map[string][]string{"query": {"a", "", ""}}},
		{`"queryStringParameters":{"q":"a"},"multiValueQueryStringParameters":{"x":["y"]}`, map[string][]string{}},
		{"\"multiValueQueryStringParameters\":{\"\xff\":[\"a\"],\"\xfe\":[\"b\"],\"\\ud800\":[\"c\"]}", map[string][]string{"invalid": {"a", "b", "c"}}},
		{`"headers":{"A":"1","a":"2","A":"3"}`, map[string][]string{"header": {"1", "2", "3"}}},
		{`"multiValueHeaders":{"a":["1"],"A":["2","3"],"a":["4"]}`, map[string][]string{"header": {"1", "2", "3", "4"}}},
		{`"pathParameters":{"id":"a"}`, map[string][]string{"path": {"a"}}},
		{`"pathParameters":{"id":"a","id":"a"}`, map[string][]string{}},
		{`"stageVariables":{"rate":"60"}`, map[string][]string{"stage": {"60"}}},
		{`"stageVariables":{"rate":60}`, map[string][]string{"stage": {"60"}}},
		{`"stageVariables":{"rate":null}`, map[string][]string{}},
		{`"stageVariables":{"rate":"60","rate":"70"}`, map[string][]string{}},
	} {
		got := map[string][]string{}
		op := reading(func(r *api.Request) {
			for name, values := range map[string][]string{
				"query": r.Query("q"), "invalid": r.Query("\ufffd"), "header": r.Header("a"), "path": {r.Path("id")}, "stage": {r.StageVariable("rate")},
			} {
				if strings.Join(values, "") != "" {
					got[name] = values
				}
			}
		})
		const key = `"Authorization":["Bearer ` + standardToken + `"]`
		single := strings.NewReplacer("[", "", "]", "").Replace(key)
		maps := strings.NewReplacer(`"headers":{`, `"headers":{`+single+`,`, `"multiValueHeaders":{`, `"multiValueHeaders":{`+key+`,`).Replace(c.maps)
		if maps == c.maps {
			maps = `"headers":{` + single + `},` + maps
		}
		payload := `{"resource":"` + resource + `","httpMethod":"GET",` + maps + `}`
		out, _ := invoke(t, op, []byte(payload))
		if diff := cmp.Diff(c.want, got); diff != "" || !strings.Contains(string(out), `"statusCode":200`) {
			t.Errorf("%s: %s\n%s", c.maps, out, diff)
		}
	}
}
