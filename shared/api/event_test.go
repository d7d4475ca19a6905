package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
)

func TestHandlerRefusesOtherRoutes(t *testing.T) {
	for name, change := range map[string]map[string]any{
		"method":   {"httpMethod": "POST"},
		"resource": {"resource": "/api/v1/other"},
		"proxy":    {"resource": "/{proxy+}"},
	} {
		e := event("")
		maps.Copy(e, change)
		status, _, body, _ := run(t, api.Operation{}, e)
		if want := errorBody(404, "Resource not found", ""); status != 404 || body != want {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

func TestStageVariablesMayBeNumbers(t *testing.T) {
	for value, want := range map[string]string{`"60"`: "60", `60`: "60", `""`: "", `null`: "", `"60","rate":"70"`: ""} {
		var got string
		op := api.Operation{ID: "x", Method: "GET", Resource: resource, Prepare: func(_ context.Context, r *api.Request) api.Act {
			got = r.StageVariable("rate")
			return func(context.Context, auth.Caller) (api.Response, error) { return api.Response{Status: 200}, nil }
		}}
		payload := `{"resource":"` + resource + `","httpMethod":"GET","headers":{"authorization":"Bearer ` + standardToken + `"},"stageVariables":{"rate":` + value + `}}`
		h := api.Handler(auth.NewVerifier(keyTable{}, "access"), slog.New(slog.DiscardHandler), op)
		if _, err := h.Invoke(t.Context(), []byte(payload)); err != nil || got != want {
			t.Errorf("%s: %q, %v", value, got, err)
		}
	}
}

// Names that come twice in a map, as two names that are not UTF-8 do, have all
// their values, in order.
func TestRepeatedNamesKeepEveryValue(t *testing.T) {
	for _, c := range []struct {
		event string // its maps
		want  map[string][]string
	}{
		{`"multiValueQueryStringParameters":{"q":["a","b"],"x":["y"],"q":["c"]}`, map[string][]string{"query": {"a", "b", "c"}}},
		{`"queryStringParameters":{"q":"a","q":"b"}`, map[string][]string{"query": {"a", "b"}}},
		{`"queryStringParameters":{"q":"a"},"queryStringParameters":{"q":"b"}`, map[string][]string{"query": {"a", "b"}}},
		{`"queryStringParameters":{"q":null,"q":6e1,"q":true,"q":false,"q":{"q":"x"}}`, map[string][]string{"query": {"", "6e1", "true", "false", ""}}},
		{`"multiValueQueryStringParameters":{"q":null,"q":[],"q":"a","q":[null,["b"]]}`, map[string][]string{"query": {"a", "", ""}}},
		{`"queryStringParameters":{"q":"a"},"multiValueQueryStringParameters":{"x":["y"]}`, map[string][]string{}},
		{"\"multiValueQueryStringParameters\":{\"\xff\":[\"a\"],\"\xfe\":[\"b\"],\"\\ud800\":[\"c\"]}", map[string][]string{"mangled": {"a", "b", "c"}}},
		{`"headers":{"A":"1","a":"2","A":"3"}`, map[string][]string{"header": {"1", "2", "3"}}},
		{`"multiValueHeaders":{"a":["1"],"A":["2","3"],"a":["4"]}`, map[string][]string{"header": {"1", "2", "3", "4"}}},
		{`"pathParameters":{"id":"a"}`, map[string][]string{"path": {"a"}}},
		{`"pathParameters":{"id":"a","id":"a"}`, map[string][]string{}},
	} {
		got := map[string][]string{}
		h := api.Handler(auth.NewVerifier(keyTable{}, "access"), slog.New(slog.DiscardHandler), api.Operation{
			Method: "GET", Resource: resource, Prepare: func(_ context.Context, r *api.Request) api.Act {
				for name, values := range map[string][]string{
					"query": r.Query("q"), "mangled": r.Query("\ufffd"), "header": r.Header("a"), "path": {r.Path("id")},
				} {
					if strings.Join(values, "") != "" {
						got[name] = values
					}
				}
				return nil
			},
		})
		payload := `{"resource":"` + resource + `","httpMethod":"GET","headers":{"Authorization":"Bearer x"},` + c.event + `}`
		payload = strings.Replace(payload, `"multiValueHeaders":{`, `"multiValueHeaders":{"Authorization":["Bearer x"],`, 1)
		out, err := h.Invoke(t.Context(), []byte(payload))
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil || !strings.Contains(string(out), `"statusCode":401`) {
			t.Errorf("%s: %v, %s\n%s", c.event, err, out, diff)
		}
	}
}

func TestHandlerAnswersWhatIsNoEvent(t *testing.T) {
	for _, payload := range []string{``, `[]`, `"x"`, `{"body":{"key":"sk-secret"}}`, `{"headers":1}`, `{"multiValueHeaders":["sk-secret"]}`} {
		unreadable(t, []byte(payload), "")
	}
}

// An event that cannot be read still yields the request id where it has one.
func TestTheRequestIDOfAnEventThatCannotBeRead(t *testing.T) {
	const context = `"requestContext":{"a":{"requestId":"x"},"requestId":"req-\u0031","identity":{"sourceIp":"192.0.2.1"}}`
	const whole = `{"headers":{"requestId":"x"},"body":"sk-secret",` + context + `,"isBase64Encoded":false}`
	const known = len(`{"headers":{"requestId":"x"},"body":"sk-secret","requestContext":{"a":{"requestId":"x"},"requestId":"req-\u0031"`)
	for end := range len(whole) {
		id := ""
		if end >= known {
			id = "req-1"
		}
		unreadable(t, []byte(whole[:end]), id)
	}
	for _, rest := range []string{
		`"body":"sk-","body":"sk-secret"`, `"body":"x","body":null`, `"body":{"body":"sk-secret"}`, `"isBase64Encoded":true,"body":"c2stc2VjcmV0!"`,
		`"isBase64Encoded":true,"isBase64Encoded":false`, `"isBase64Encoded":"true"`, `"httpMethod":"GET","httpMethod":"GET"`,
		`"resource":"a","resource":"b"`, `"resource":1`, `"headers":1`, `"multiValueHeaders":"sk-secret"`, `"pathParameters":[]`,
		`"requestContext":null`, `"requestContext":{"requestId":"req-2"}`, `"stageVariables":true`, `"x":01`,
	} {
		unreadable(t, []byte(`{`+context+`,`+rest+`}`), "req-1")
	}
	for _, broken := range []string{`"a":01`, `"body":sk-secret`, `"a":"\x"`, `"a"`, "\"a\":\"\n\"", `"requestContext":{"requestId":}`, `"requestContext":"requestContext"]`, `[`} {
		unreadable(t, []byte(`{`+broken+`,`+context+`}`), "req-1")
	}
	unreadable(t, []byte(`{"requestContext":{"requestId":"req-1","requestId":"req-2"}}`), "req-1")
	unreadable(t, []byte(`{"requestContext":{"requestId":1,"identity":{"sourceIp":"192.0.2.1"}}}`), "")
	unreadable(t, []byte(`{"requestContext":"x","a":"b","requestId":"y"}`), "")
	unreadable(t, []byte(`{"requestContext":[{"requestId":"x"}],"requestId":"x"}`), "")
}

// unreadable checks the answer to an event that cannot be read, and its log line.
func unreadable(t *testing.T, payload []byte, id string) {
	t.Helper()
	var lines bytes.Buffer
	h := api.Handler(auth.NewVerifier(keyTable{}, "access"), slog.New(slog.NewJSONHandler(&lines, nil)), api.Operation{})
	given := bytes.Clone(payload)
	out, err := h.Invoke(t.Context(), given)
	if err != nil || len(bytes.Trim(given, "\x00")) > 0 {
		t.Fatalf("%s: %v; the event afterwards: %q", payload, err, given)
	}
	var line struct {
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if got := readAnswer(t, out); got != (outcome{Status: 500, RequestID: id}) || line.RequestID != id {
		t.Errorf("%s: answered %+v, logged %q, want request id %q", payload, got, line.RequestID, id)
	}
	if strings.Contains(string(out)+lines.String(), "sk-secret") {
		t.Errorf("%s: %s\n%s", payload, out, lines.String())
	}
}

func TestHandlerTakesAnEventWithMangledText(t *testing.T) {
	var issues []api.Issue
	op := api.Operation{ID: "x", Method: "GET", Resource: resource, Prepare: func(_ context.Context, r *api.Request) api.Act {
		return func(context.Context, auth.Caller) (api.Response, error) {
			issues = r.Object("a").Issues()
			return api.Response{Status: 200}, nil
		}
	}}
	for _, body := range []string{`{\"a\":\"\ud800\"}`, "{\\\"a\\\":\\\"\xff\\\"}"} {
		payload := `{"resource":"` + resource + `","httpMethod":"GET","headers":{"authorization":"Bearer ` + standardToken + `","content-type":"application/json"},"body":"` + body + `"}`
		h := api.Handler(auth.NewVerifier(keyTable{}, "access"), slog.New(slog.DiscardHandler), op)
		out, err := h.Invoke(t.Context(), []byte(payload))
		if err != nil || !strings.Contains(string(out), `"statusCode":200`) || len(issues) != 1 || issues[0].Path != "/a" {
			t.Errorf("%q: %s, %v, %v", body, out, issues, err)
		}
	}
}
