package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/api"
)

// A name that is duplicate in a map, as two names in invalid UTF-8 are, has all
// values in order. Path parameters and stage variables have one value or none.
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

// An event that is not JSON, or has two readings, is a 500 with the request id that
// precedes the fault; FuzzHandler checks the request id of any other.
func TestTheRequestIDOfAMalformedEvent(t *testing.T) {
	const context = `"requestContext":{"a":{"requestId":"x"},"requestId":"req-\u0031","identity":{"sourceIp":"192.0.2.1"}}`
	const whole = `{"headers":{"requestId":"x"},"body":"sk-secret",` + context + `,"isBase64Encoded":false}`
	const known = len(`{"headers":{"requestId":"x"},"body":"sk-secret","requestContext":{"a":{"requestId":"x"},"requestId":"req-\u0031"`)
	for end := range len(whole) {
		id := ""
		if end >= known {
			id = "req-1"
		}
		refused(t, []byte(whole[:end]), id)
	}
	for _, malformed := range []string{`"a":01`, `"body":sk-secret`, `"a":"\x"`, `"a"`, "\"a\":\"\n\"", `[`} {
		refused(t, []byte(`{`+malformed+`,`+context+`}`), "")
		refused(t, []byte(`{`+context+`,`+malformed+`}`), "req-1")
	}
	refused(t, []byte(`{`+context+`},{"a":1}`), "req-1")
	for _, duplicate := range []string{
		`"resource":"x"`, `"httpMethod":"GET"`, `"body":null`, `"isBase64Encoded":false`, `"headers":{}`, `"queryStringParameters":null`,
		`"requestContext":null`, `"requestContext":[{"requestId":"x"}]`,
	} {
		refused(t, []byte(`{`+context+`,`+duplicate+`,`+duplicate+`}`), "req-1")
	}
	refused(t, []byte(`{"requestContext":{"requestId":"r-1","requestId":"r-2"}}`), "r-1")
	refused(t, []byte(`{"requestContext":{"requestId":"r-1","identity":{"sourceIp":"a","sourceIp":"a"}}}`), "r-1")
	refused(t, []byte(`{"requestContext":{"requestId":"r-1","identity":{},"identity":{}}}`), "r-1")
}

// refused checks the response to an event that is refused, and its log line.
func refused(t *testing.T, payload []byte, id string) {
	t.Helper()
	out, log := invoke(t, api.Operation{}, payload)
	if got := functest.ReadAnswer(t, out, log); got.Status != http.StatusInternalServerError || got.RequestID != id {
		t.Errorf("%s: responded %d, request id %q, want %q", payload, got.Status, got.RequestID, id)
	}
	if strings.Contains(string(out)+log, "sk-secret") {
		t.Errorf("%s: %s\n%s", payload, out, log)
	}
}
