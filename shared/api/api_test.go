package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/issues"
)

const (
	resource = "/api/v1/things/{id}"
	account  = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"

	managementToken = "sbx_management"
	standardToken   = "sbx_standard"
	corruptToken    = "sbx_corrupt"
	failingToken    = "sbx_failing"
)

// keyTable is a fake of the access table, for key look-ups.
type keyTable struct{}

func (keyTable) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	row := func(kind string) (*dynamodb.GetItemOutput, error) {
		return &dynamodb.GetItemOutput{Item: kit.Row{
			"pk": in.Key["pk"], "sk": in.Key["sk"], "v": kit.Number("1"),
			"account": kit.Text(account), "kind": kit.Text(kind), "disabled": kit.Bool(false),
		}}, nil
	}
	switch kit.TextOf(in.Key, "pk") {
	case "key#" + string(auth.HashKey(managementToken)):
		return row("management")
	case "key#" + string(auth.HashKey(standardToken)):
		return row("standard")
	case "key#" + string(auth.HashKey(corruptToken)):
		return row("root")
	case "key#" + string(auth.HashKey(failingToken)):
		return nil, errors.New("table unreachable")
	default:
		return &dynamodb.GetItemOutput{}, nil
	}
}

// invoke sends a payload to an operation and returns the response and the log. It
// checks that the event is overwritten.
func invoke(t *testing.T, op api.Operation, payload []byte) (response []byte, log string) {
	t.Helper()
	var lines bytes.Buffer
	h := api.Handler(auth.NewVerifier(keyTable{}, "access"), slog.New(slog.NewJSONHandler(&lines, nil)), op)
	given := bytes.Clone(payload)
	response, err := h.Invoke(t.Context(), given)
	if err != nil || len(bytes.Trim(given, "\x00")) > 0 {
		t.Fatalf("%.2000q: %v; the event afterwards: %q", payload, err, given)
	}
	return response, lines.String()
}

// run sends one event to an operation.
func run(t *testing.T, op api.Operation, event map[string]any) functest.Answer {
	t.Helper()
	op.ID, op.Method, op.Resource = "testThing", http.MethodGet, resource
	if op.Prepare == nil {
		op.Prepare = acting(api.Response{Status: 200, Body: []byte(`{"ok":true}`)}, nil)
	}
	payload, err := json.Marshal(event)
	kit.Must(t, err)
	out, log := invoke(t, op, payload)
	return functest.ReadAnswer(t, out, log)
}

// reading is an operation on the test's route that reads a request and returns 200.
func reading(read func(*api.Request)) api.Operation {
	return api.Operation{ID: "testThing", Method: http.MethodGet, Resource: resource,
		Prepare: func(_ context.Context, r *api.Request) api.Act {
			return func(context.Context, auth.Caller) (api.Response, error) {
				read(r)
				return api.Response{Status: http.StatusOK, Body: []byte(`{"ok":true}`)}, nil
			}
		}}
}

func acting(r api.Response, err error) func(context.Context, *api.Request) api.Act {
	return func(context.Context, *api.Request) api.Act {
		return func(context.Context, auth.Caller) (api.Response, error) { return r, err }
	}
}

// event is a proxy event from the holder of the token; "" sends none.
func event(token string) map[string]any {
	e := map[string]any{
		"resource": resource, "httpMethod": "GET", "path": "/elsewhere",
		"multiValueHeaders": map[string][]string{"Accept": {"*/*"}, "x-request-id": {"chosen-by-caller"}},
		"requestContext":    map[string]any{"requestId": "req-1", "identity": map[string]any{"sourceIp": "192.0.2.1"}},
	}
	if token != "" {
		e["multiValueHeaders"].(map[string][]string)["authorization"] = []string{"Bearer " + token}
	}
	return e
}

func errorBody(code int, message, metadata string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":%q,"metadata":{"request_id":"req-1"%s}}}`, code, message, metadata)
}

// An event that the gateway does not send, perhaps from `sam local invoke`, is a 404.
// Its log line gives the reason.
func TestAWrongEventIsNamed(t *testing.T) {
	for _, c := range []struct {
		member string
		value  any
		want   string
	}{
		{"httpMethod", nil, "httpMethod is missing"},
		{"httpMethod", "PUT", "httpMethod is not GET"},
		{"resource", nil, "resource is missing"},
		{"resource", "/other", "resource is not " + resource},
	} {
		e := event(managementToken)
		e[c.member] = c.value
		if got := run(t, api.Operation{}, e); got.Status != http.StatusNotFound || got.Line["event"] != c.want || got.Line["level"] != "WARN" {
			t.Errorf("%s %v: %d %v", c.member, c.value, got.Status, got.Line)
		}
	}
}

func TestHandlerAnswersInOrder(t *testing.T) {
	const missing = "Missing Authentication header"
	unauthenticated := api.Operation{StandardKeyError: api.Unauthenticated(auth.ManagementKeyRequired)}
	forbidden := api.Operation{StandardKeyError: api.Forbidden()}
	faults := []issues.Issue{{Path: "/a/0", Reason: issues.Invalid, Message: "must be a string"}, {Reason: issues.UnknownMember, Message: "unknown member"}}
	cases := map[string]struct {
		op     api.Operation
		token  string
		status int
		body   string
	}{
		"success":               {api.Operation{}, standardToken, 200, `{"ok":true}`},
		"management may":        {forbidden, managementToken, 200, `{"ok":true}`},
		"no key":                {forbidden, "", 401, errorBody(401, missing, `,"reason":"missing"`)},
		"malformed key":         {forbidden, "a b", 401, errorBody(401, missing, `,"reason":"malformed"`)},
		"unknown key":           {api.Operation{Prepare: panickingAct}, "sbx_other", 401, errorBody(401, missing, `,"reason":"unknown_key"`)},
		"corrupt key":           {forbidden, corruptToken, 401, errorBody(401, missing, `,"reason":"unknown_key"`)},
		"keys out of reach":     {forbidden, failingToken, 500, errorBody(500, "Internal Server Error", "")},
		"standard, refused 401": {unauthenticated, standardToken, 401, errorBody(401, missing, `,"reason":"management_key_required"`)},
		"not found":             {api.Operation{Prepare: acting(api.Response{}, api.NotFound())}, standardToken, 404, errorBody(404, "Resource not found", "")},
		"wrapped":               {api.Operation{Prepare: acting(api.Response{}, fmt.Errorf("x: %w", api.NotFound()))}, standardToken, 404, errorBody(404, "Resource not found", "")},
		"rate limited":          {api.Operation{Prepare: acting(api.Response{}, api.RateLimited())}, standardToken, 429, errorBody(429, "Rate limit exceeded", "")},
		"invalid":               {api.Operation{Prepare: acting(api.Response{}, api.Invalid(faults...))}, standardToken, 400, errorBody(400, "Invalid request parameters", `,"issues":[{"path":"/a/0","reason":"invalid","message":"must be a string"},{"path":"","reason":"unknown_member","message":"unknown member"}]`)},
		"101 issues":            {api.Operation{Prepare: acting(api.Response{}, api.Invalid(slices.Repeat([]issues.Issue{{Reason: "r", Message: "m"}}, 101)...))}, standardToken, 400, errorBody(400, "Invalid request parameters", `,"issues":[`+strings.Repeat(`{"path":"","reason":"r","message":"m"},`, 99)+`{"path":"","reason":"r","message":"m"}]`)},
		"unexpected error":      {api.Operation{Prepare: acting(api.Response{}, errors.New("boom"))}, standardToken, 500, errorBody(500, "Internal Server Error", "")},
		"panic in act":          {api.Operation{Prepare: panickingAct}, standardToken, 500, errorBody(500, "Internal Server Error", "")},
		"panic in prepare":      {api.Operation{Prepare: panickingPrepare}, standardToken, 500, errorBody(500, "Internal Server Error", "")},
		"standard, refused 403": {api.Operation{StandardKeyError: api.Forbidden(), Prepare: panickingAct}, standardToken, 403, errorBody(403, "Only management keys can perform this operation", `,"reason":"management_key_required"`)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, c.op, event(c.token))
			if got.Status != c.status || got.Body != c.body || got.RequestID != "req-1" {
				t.Errorf("got %d %s\nwant %d %s", got.Status, got.Body, c.status, c.body)
			}
			want := map[string]string{
				"X-Request-Id": "req-1", "Cache-Control": "no-store", "Content-Type": "application/json",
				"Strict-Transport-Security": "max-age=31536000", "X-Content-Type-Options": "nosniff",
			}
			if c.status == 401 {
				want["WWW-Authenticate"] = "Bearer"
			}
			if diff := cmp.Diff(want, got.Header); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			fields := map[string]any{"operation": "testThing", "status": float64(c.status), "level": "INFO"}
			if c.status == 500 || name == "corrupt key" {
				fields["level"] = "ERROR"
			}
			if got.Reason != "" {
				fields["reason"] = got.Reason
			}
			if got.Reason != "missing" && got.Reason != "malformed" {
				fields["key"] = auth.HashKey(c.token).Short()
			}
			if (c.token == standardToken || c.token == managementToken) && name != "panic in prepare" {
				fields["account"] = account
			}
			for _, field := range []string{"operation", "status", "level", "reason", "key", "account"} {
				if got.Line[field] != fields[field] || got.Audit != nil {
					t.Errorf("%s is %v in the log, want %v; audit line %v", field, got.Line[field], fields[field], got.Audit)
				}
			}
		})
	}
}

func panickingAct(context.Context, *api.Request) api.Act {
	return func(context.Context, auth.Caller) (api.Response, error) { panic("sk-secret in a panic") }
}

func panickingPrepare(context.Context, *api.Request) api.Act {
	panic(errors.New("sk-secret in a panic"))
}

func TestHandlerAuditsAuthenticatedCallers(t *testing.T) {
	noting := func(err error) func(context.Context, *api.Request) api.Act {
		return func(_ context.Context, r *api.Request) api.Act {
			return func(context.Context, auth.Caller) (api.Response, error) {
				r.Note(slog.String("file", "file_1"))
				return api.Response{Status: 200}, err
			}
		}
	}
	for outcome, err := range map[string]error{"done": nil, "refused": api.Invalid(issues.Issue{Reason: issues.Invalid, Message: "no"}), "uncertain": errors.New("boom")} {
		audit := run(t, api.Operation{Audited: true, Prepare: noting(err)}, event(managementToken)).Audit
		if audit["outcome"] != outcome || audit["account"] != account ||
			audit["key"] != auth.HashKey(managementToken).Short() || audit["source_ip"] != "192.0.2.1" || audit["file"] != "file_1" {
			t.Errorf("%s: %v", outcome, audit)
		}
	}
	if got := run(t, api.Operation{Audited: true}, event("sbx_other")); got.Audit != nil {
		t.Errorf("an unknown caller is audited: %v", got.Audit)
	}
}

func TestHandlerReservesTimeForItsResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left time.Duration
		op := api.Operation{ID: "x", Method: "GET", Resource: resource, Prepare: func(context.Context, *api.Request) api.Act {
			return func(ctx context.Context, _ auth.Caller) (api.Response, error) {
				deadline, _ := ctx.Deadline()
				left = time.Until(deadline)
				return api.Response{Status: 200}, nil
			}
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		payload, err := json.Marshal(event(standardToken))
		kit.Must(t, err)
		h := api.Handler(auth.NewVerifier(keyTable{}, "access"), slog.New(slog.DiscardHandler), op)
		_, err = h.Invoke(ctx, payload)
		kit.Must(t, err)
		if left != 9500*time.Millisecond {
			t.Errorf("an operation has %v of 10 s", left)
		}
	})
}

// An operator finds the cause of a 500 by its stack.
func TestAPanicIsLoggedWithItsPlace(t *testing.T) {
	none := []int{}
	for name, c := range map[string]struct {
		prepare     func(context.Context, *api.Request) api.Act
		what, place string
	}{
		"the runtime's": {func(context.Context, *api.Request) api.Act {
			return func(context.Context, auth.Caller) (api.Response, error) {
				none[0]++
				return api.Response{}, nil
			}
		}, "panic: runtime error: index out of range [0] with length 0", "TestAPanicIsLoggedWithItsPlace"},
		"any other":      {panickingAct, "panic: string", "panickingAct"},
		"in a side call": {panickingPrepare, "panic: *errors.errorString", "panickingPrepare"},
		"in a side call of a side call": {func(ctx context.Context, r *api.Request) api.Act {
			calls.Together(ctx, func(ctx context.Context) { panickingPrepare(ctx, r) })
			return nil
		}, "panic: *errors.errorString", "panickingPrepare"},
	} {
		line := run(t, api.Operation{Prepare: c.prepare}, event(standardToken)).Line
		said, _ := line["error"].(map[string]any)
		stack, _ := line["stack"].(string)
		if said["text"] != c.what || !strings.Contains(stack, "api_test."+c.place) {
			t.Errorf("%s: %v", name, line)
		}
	}
}
