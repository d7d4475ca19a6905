package contract_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/syncjobs"
)

const linesFile = "../log-lines.json"

// varying parts differ from run to run: times, ids, hashes and numbers
// that are no status.
var varying = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{8}-[0-9a-f-]{27}|file_[0-9a-f]+|"key":"[0-9a-f]+"|key [0-9a-f]{12}|"(duration_ms|aws_calls)":[0-9.]+|"(aws_request_id)":"[^"]*"`)

// TestLogLines provokes each kind of answer and compares the functions' lines with
// infra/log-lines.json, on which infra/lint tries every metric filter and alarm.
// SIGNALBOX_LINES=record writes the file.
func TestLogLines(t *testing.T) {
	t.Parallel()
	if the.state == "" {
		t.Skip("the logs are read from the state folder of an edition of its own")
	}
	state := t.TempDir()
	s, stop, err := start(state, nil)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, stop()) })
	n, spent, bad := s.tenant(t), s.tenant(t), s.tenant(t)
	jobs, access := testkit.Rows{DB: s.DynamoDB, Table: s.Jobs}, testkit.Rows{DB: s.DynamoDB, Table: s.Access}
	job, damaged := n.job(t, syncjobs.Succeeded), n.job(t, syncjobs.Succeeded)
	jobs.Set(t, testkit.Key("job#"+damaged), "status", testkit.Text("nonsense"))
	access.Set(t, testkit.Key("key#"+hashOf(bad.management), "key"), "kind", testkit.Text("nonsense"))
	tag := get(job).At(s.client).As(n.management).Do(t).Header.Get("ETag")
	lines := map[string]json.RawMessage{}
	ask := func(name string, r request, status int) {
		t.Helper()
		answer := r.At(s.client).Do(t).Is(t, status)
		lines[name] = logLine(t, state, answer.Header.Get("X-Request-Id"))
	}
	ask("get 200", get(job).As(n.management), 200)
	ask("get 304", get(job).As(n.management).With("If-None-Match", tag), 304)
	ask("get 401", get(job).As("unknown"), 401)
	ask("get 401 damaged key", get(job).As(bad.management), 401)
	ask("get 404", get(unknownJob).As(n.management), 404)
	ask("get 404 damaged job of another", get(damaged).As(spent.management), 404)
	ask("get 500 damaged job", get(damaged).As(n.management), 500)
	ask("create 201", post(bodyWith("")).As(n.management), 201)
	ask("create 400", post("{}").As(n.management), 400)
	ask("create 401", post("").As("unknown"), 401)
	ask("create 401 damaged key", post("").As(bad.management), 401)
	ask("create 403", post("").As(n.standard), 403)
	ask("delete 200", del(n.file(t, n.workspace)).As(n.standard), 200)
	ask("delete 401", del("file_unknown").As("unknown"), 401)
	ask("delete 401 damaged key", del("file_unknown").As(bad.management), 401)
	ask("delete 404", del("file_unknown").As(n.standard), 404)
	refused := del("file_unknown").At(s.client).As(spent.standard).Do(t)
	for tries := 0; refused.Status != http.StatusTooManyRequests && tries < 5*burst; tries++ {
		refused = del("file_unknown").At(s.client).As(spent.standard).Do(t)
	}
	lines["delete 429"] = logLine(t, state, refused.Is(t, http.StatusTooManyRequests).Header.Get("X-Request-Id"))
	for _, table := range []string{s.Jobs, s.Control} {
		_, err := s.DynamoDB.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table})
		testkit.Must(t, err)
	}
	_, err = s.KMS.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &s.SealingKey}, func(o *kms.Options) { o.RetryMaxAttempts = 1 })
	testkit.Must(t, err)
	ask("get 500", get(job).As(n.management), 500)
	ask("create 500", post(bodyWith("")).As(n.management).Idempotent(idempotencyKey), 500)
	ask("create 500 KMS", post(bodyWith("")).As(n.management), 500)
	ask("delete 500", del("file_unknown").As(n.standard), 500)
	if os.Getenv("SIGNALBOX_LINES") == "record" {
		var text []string
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			text = append(text, fmt.Sprintf("  %q: %s", name, lines[name]))
		}
		testkit.Must(t, os.WriteFile(linesFile, []byte("{\n"+strings.Join(text, ",\n")+"\n}\n"), 0o600))
	}
	text, err := os.ReadFile(linesFile)
	testkit.Must(t, err)
	var expected map[string]json.RawMessage
	testkit.Must(t, json.Unmarshal(text, &expected))
	if diff := cmp.Diff(alike(t, expected), alike(t, lines)); diff != "" {
		t.Errorf("infra/log-lines.json is another (-), see SIGNALBOX_LINES:\n%s", diff)
	}
}

// alike returns the lines without varying parts.
func alike(t *testing.T, lines map[string]json.RawMessage) map[string]string {
	t.Helper()
	same := map[string]string{}
	for name, line := range lines {
		var fields map[string]any
		testkit.Must(t, json.Unmarshal(line, &fields))
		sorted, err := json.Marshal(fields)
		testkit.Must(t, err)
		same[name] = varying.ReplaceAllString(string(sorted), "…")
	}
	return same
}

// logLine returns the request's line in the function's log, once it is there.
func logLine(t *testing.T, state, requestID string) json.RawMessage {
	t.Helper()
	for timeout := time.Now().Add(time.Minute); time.Now().Before(timeout); time.Sleep(20 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(state, "logs", "*Function.log"))
		testkit.Must(t, err)
		for _, file := range files {
			content, err := os.ReadFile(file) //nolint:gosec // the suite's own state folder
			testkit.Must(t, err)
			for line := range strings.Lines(string(content)) {
				if strings.Contains(line, requestID) && strings.Contains(line, `"message":"request"`) && strings.HasSuffix(line, "\n") {
					return json.RawMessage(strings.TrimSuffix(line, "\n"))
				}
			}
		}
	}
	t.Fatalf("request %s has no line in the log", requestID)
	return nil
}
