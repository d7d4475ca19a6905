package api_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"signalbox.dev/shared/api"
)

// leaked is in seeds where secrets are: in the token, the body, the path.
const leaked = "sk-leaked-0123456789"

// fuzzed is an operation that reads all of a request and returns 200 or panics.
func fuzzed() api.Operation {
	return reading(func(r *api.Request) {
		_ = []any{r.Query("workspace_id"), r.Header("X"), r.StageVariable("rate"), r.Bearer(), r.Object("key", "provider").Issues()}
		if id := r.Path("id"); strings.HasPrefix(id, "panic") {
			panic(id)
		}
	})
}

// For any payload the response is one of a proxy integration, in the envelope, and
// neither it nor the log contains a secret. Status, reason and (of JSON) request id
// are those of an independent reading.
func FuzzHandler(f *testing.F) {
	for _, seed := range eventSeeds() {
		f.Add([]byte(seed))
	}
	random := rand.New(rand.NewPCG(9, 1)) //nolint:gosec // the same events in each run
	for range 60 {                        // few enough for a short run to begin with
		f.Add(rawEvent(random))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		out, log := invoke(t, fuzzed(), payload)
		got := readAnswer(t, out)
		want := expect(payload)
		if !json.Valid(payload) {
			want.RequestID = got.RequestID
		}
		if got != want {
			t.Errorf("%.2000q\nanswered %+v, want %+v", payload, got, want)
		}
		if written := string(out) + string(log); !strings.Contains(got.RequestID, leaked) && strings.Contains(written, leaked) {
			t.Errorf("a secret is repeated: %s", written)
		}
		if lines := bytes.Count(log, []byte("\n")); lines != 1 || !json.Valid(log) {
			t.Errorf("%d log lines: %s", lines, log)
		}
	})
}

// outcome is the part of a response that is compared.
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
