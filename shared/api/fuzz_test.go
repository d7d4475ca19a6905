package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
)

// leaked stands in seeds where secrets do: in the token, the body, the address.
const leaked = "sk-leaked-0123456789"

// fuzzed is an operation that does what a request asks for: it reads all that a
// request has, and answers, or fails in one of the ways there are.
func fuzzed() api.Operation {
	return api.Operation{
		ID: "testThing", Method: http.MethodGet, Resource: resource,
		Prepare: func(_ context.Context, r *api.Request) api.Act {
			return func(context.Context, auth.Caller) (api.Response, error) {
				_ = []any{r.Query("workspace_id"), r.Header("X"), r.StageVariable("rate"), r.Bearer(), r.Object("key", "provider").Issues()}
				if id := r.Path("id"); strings.HasPrefix(id, "panic") {
					panic(id)
				}
				return api.Response{Status: http.StatusOK, Body: []byte(`{"ok":true}`)}, nil
			}
		},
	}
}

// Whatever arrives, the answer is one that a gateway takes, in the envelope, and
// neither it nor the log repeats a secret; status and reason are those of an
// independent reading, and so is the request id where the event is JSON.
func FuzzHandler(f *testing.F) {
	for _, seed := range eventSeeds() {
		f.Add([]byte(seed))
	}
	random := rand.New(rand.NewPCG(9, 1)) //nolint:gosec // the same events in each run
	for range 300 {
		f.Add(rawEvent(random))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		var log bytes.Buffer
		h := api.Handler(auth.NewVerifier(keyTable{}, "access"), slog.New(slog.NewJSONHandler(&log, nil)), fuzzed())
		given := bytes.Clone(payload)
		out, err := h.Invoke(t.Context(), given)
		if err != nil || len(bytes.Trim(given, "\x00")) > 0 {
			t.Fatalf("%v; the event afterwards: %q", err, given)
		}
		got := readAnswer(t, out)
		want := expect(payload)
		if !json.Valid(payload) {
			want.RequestID = got.RequestID
		}
		if got != want {
			t.Errorf("%.2000q\nanswered %+v, want %+v", payload, got, want)
		}
		if written := string(out) + log.String(); !strings.Contains(got.RequestID, leaked) && strings.Contains(written, leaked) {
			t.Errorf("a secret is repeated: %s", written)
		}
		if lines := bytes.Count(log.Bytes(), []byte("\n")); lines != 1 || !json.Valid(log.Bytes()) {
			t.Errorf("%d log lines: %s", lines, log.Bytes())
		}
	})
}

// outcome is what an answer says.
type outcome struct {
	Status            int
	Reason, RequestID string
}

// readAnswer reads an answer and checks its form.
func readAnswer(t *testing.T, out []byte) outcome {
	t.Helper()
	var answer struct {
		StatusCode      *int              `json:"statusCode"`
		Headers         map[string]string `json:"headers"`
		Body            *string           `json:"body"`
		IsBase64Encoded *bool             `json:"isBase64Encoded"`
	}
	strictly(t, out, &answer)
	if answer.StatusCode == nil || answer.Body == nil || answer.IsBase64Encoded == nil || *answer.IsBase64Encoded {
		t.Fatalf("no answer of a proxy integration: %s", out)
	}
	id, ok := answer.Headers["X-Request-Id"]
	if !ok || answer.Headers["Content-Type"] != "application/json" || answer.Headers["Cache-Control"] != "no-store" {
		t.Fatalf("headers: %v", answer.Headers)
	}
	got := outcome{Status: *answer.StatusCode, RequestID: id}
	if got.Status == http.StatusOK {
		return got
	}
	var body struct {
		Error struct {
			Code     int    `json:"code"`
			Message  string `json:"message"`
			Metadata struct {
				RequestID *string `json:"request_id"`
				Reason    string  `json:"reason"`
			} `json:"metadata"`
		} `json:"error"`
	}
	strictly(t, []byte(*answer.Body), &body)
	message := map[int]string{401: "Missing Authentication header", 404: "Resource not found", 500: "Internal Server Error"}[got.Status]
	e := body.Error
	if message == "" || e.Code != got.Status || e.Message != message || e.Metadata.RequestID == nil || *e.Metadata.RequestID != id {
		t.Fatalf("status %d, request id %q: %s", got.Status, id, *answer.Body)
	}
	if challenged := answer.Headers["WWW-Authenticate"] == "Bearer"; challenged != (got.Status == http.StatusUnauthorized) {
		t.Fatalf("status %d: headers %v", got.Status, answer.Headers)
	}
	got.Reason = e.Metadata.Reason
	return got
}

// strictly decodes a value that has these members and no others.
func strictly(t *testing.T, data []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil || d.More() {
		t.Fatalf("%v in %s", err, data)
	}
}
