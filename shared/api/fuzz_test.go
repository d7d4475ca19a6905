package api_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"signalbox.dev/infra/testkit/functest"
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
		answer := functest.ReadAnswer(t, out, log)
		got := outcome{answer.Status, answer.Reason, answer.RequestID}
		want := expect(payload)
		if !json.Valid(payload) {
			want.RequestID = got.RequestID
		}
		if got != want {
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
