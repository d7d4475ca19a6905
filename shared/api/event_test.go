package api_test

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"strings"
	"testing"

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
	for value, want := range map[string]string{`"60"`: "60", `60`: "60", `""`: ""} {
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

func TestHandlerAnswersWhatIsNoEvent(t *testing.T) {
	var lines bytes.Buffer
	h := api.Handler(auth.NewVerifier(keyTable{}, "access"), slog.New(slog.NewJSONHandler(&lines, nil)), api.Operation{})
	for _, payload := range []string{``, `[]`, `"x"`, `{"body":{"key":"sk-secret"}}`, `{"headers":1}`, `{"multiValueHeaders":{"a":"sk-secret"}}`} {
		out, err := h.Invoke(t.Context(), []byte(payload))
		if err != nil || !strings.Contains(string(out), `"statusCode":500`) || strings.Contains(string(out)+lines.String(), "sk-secret") {
			t.Errorf("%s: %s, %v\n%s", payload, out, err, lines.String())
		}
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
